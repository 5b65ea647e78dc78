# AX_DPT_CUDA: nvcc decides whether the cuda module is built. --with-cuda=DIR names a toolkit that is not on PATH. The
# runtime is linked statically, so that the module loads, and says what is missing, on machines without CUDA. By default
# kernels are compiled once, for compute capability 8.0; newer GPUs' drivers translate that when they first load it.
AC_DEFUN([AX_DPT_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=auto|no|DIR], [CUDA toolkit for the cuda backend])], [], [with_cuda=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler])
  have_cuda=no cuda_reason=
  AS_CASE([$with_cuda],
    [no], [cuda_reason="--with-cuda=no"],
    [auto|yes], [AS_IF([test -z "$NVCC"], [AC_PATH_PROG([NVCC], [nvcc])])],
    [AS_IF([test -z "$NVCC"], [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])])])
  AS_IF([test "$with_cuda" != no], [AS_IF([test -n "$NVCC"], [AX_DPT_CUDA_TOOLKIT], [cuda_reason="nvcc not found"])])
  AS_IF([test $have_cuda = no && test "$with_cuda" != no && test "$with_cuda" != auto],
    [AC_MSG_ERROR([--with-cuda=$with_cuda: $cuda_reason])])
  AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
  AC_SUBST([CUDA_CPPFLAGS])
  AC_SUBST([CUDA_LIBS])
  AX_DPT_CUDA_LIBRARY([cudnn], [CUDNN], [cudnn.h], [libcudnn.so.9])
  AX_DPT_CUDA_LIBRARY([nccl], [NCCL], [nccl.h], [libnccl.so.2])
])

# The toolkit's folder from nvcc itself (a wrapper on PATH may point anywhere), then one compile.
AC_DEFUN([AX_DPT_CUDA_TOOLKIT], [
  AC_MSG_CHECKING([for the CUDA toolkit of $NVCC])
  : > conftest.cu
  cuda_top=`$NVCC -dryrun conftest.cu 2>&1 | $SED -n 's/^#@S|@ TOP=//p'`
  rm -f conftest.cu
  AS_IF([test -d "$cuda_top"], [cuda_top=`cd "$cuda_top" && pwd`])
  AS_IF([test -f "$cuda_top/include/cuda_runtime_api.h"], [
    cuda_lib=
    for dir in "$cuda_top/lib64" "$cuda_top/lib" "$cuda_top/targets/x86_64-linux/lib"; do
      AS_IF([test -z "$cuda_lib" && test -f "$dir/libcudart_static.a"], [cuda_lib=$dir])
    done
    AS_IF([test -n "$cuda_lib"], [have_cuda=yes], [cuda_reason="no libcudart_static.a in $cuda_top"])
  ], [cuda_reason="no cuda_runtime_api.h in '$cuda_top'"])
  AC_MSG_RESULT([${cuda_top:-none}])
  AS_IF([test $have_cuda = yes], [
    CUDA_CPPFLAGS="-isystem $cuda_top/include"
    CUDA_LIBS="-Wl,$cuda_lib/libcudart_static.a -lpthread -ldl -lrt"
    AS_IF([test -z "$NVCCFLAGS"],
      [NVCCFLAGS="-O3 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=compute_80"])
    cuda_reason=`$NVCC --version | $SED -n 's/.*release \([[0-9.]]*\),.*/nvcc \1/p'`
  ])
])

# $1 name, $2 variable prefix, $3 header, $4 library: --with-$1=auto|no|DIR, probed and reported.
AC_DEFUN([AX_DPT_CUDA_LIBRARY], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|no|DIR], [$1 for the cuda backend (DIR holds include and lib)])], [], [with_$1=auto])
  have_$1=no $1_reason=
  AS_IF([test "$with_$1" = no], [$1_reason="--with-$1=no"], [test $have_cuda = no], [$1_reason="no cuda backend"], [
    AS_CASE([$with_$1], [auto|yes], [$2_CPPFLAGS=$CUDA_CPPFLAGS $2_LIBS="-l:$4"],
      [$2_CPPFLAGS="$CUDA_CPPFLAGS -isystem $with_$1/include" $2_LIBS="-L$with_$1/lib -l:$4"])
    dpt_save_cppflags=$CPPFLAGS dpt_save_libs=$LIBS
    CPPFLAGS="$CPPFLAGS $$2_CPPFLAGS"
    LIBS="$LIBS $$2_LIBS"
    AC_CHECK_HEADER([$3], [AC_MSG_CHECKING([for $4])
      AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])], [AC_MSG_RESULT([yes]); have_$1=yes],
        [AC_MSG_RESULT([no]); $1_reason="$4 does not link"])], [$1_reason="$3 not found"])
    CPPFLAGS=$dpt_save_cppflags LIBS=$dpt_save_libs
    AS_IF([test $have_$1 = no && test "$with_$1" != auto], [AC_MSG_ERROR([--with-$1=$with_$1: $$1_reason])])
  ])
  AC_SUBST([$2_CPPFLAGS])
  AC_SUBST([$2_LIBS])
])
