# SPDX-License-Identifier: Apache-2.0
# AX_DPT_CUDA: nvcc decides whether the cuda module is built. --with-cuda=DIR names a toolkit that is not on PATH. The
# runtime is linked statically, so that the module loads, and says what is missing, on machines without CUDA. By default
# kernels are compiled for compute capability 8.0, from that for 9.0 and 10.0; others' drivers translate it when they first
# load it.
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
  AC_ARG_WITH([cuda-libs], [AS_HELP_STRING([--with-cuda-libs=DIR],
    [folder that NVIDIA's Python wheels make (nvidia): cuDNN, cuBLASLt, NCCL and NVRTC])], [],
    [with_cuda_libs=])
  CUDA_FOLDERS=
  AX_DPT_CUDA_LIBRARY([nvrtc], [NVRTC], [nvrtc.h], [cu13])
  AX_DPT_CUDA_LIBRARY([cublas], [CUBLASLT], [cublasLt.h], [cu13])
  AX_DPT_CUDA_LIBRARY([cudnn], [CUDNN], [cudnn.h], [cudnn])
  AX_DPT_CUDA_LIBRARY([nccl], [NCCL], [nccl.h], [nccl])
  AC_SUBST([CUDA_FOLDERS])
])

# The toolkit's folder from nvcc itself (a wrapper on PATH may point anywhere), then one compile.
AC_DEFUN([AX_DPT_CUDA_TOOLKIT], [
  AC_MSG_CHECKING([for the CUDA toolkit of $NVCC])
  : > conftest.cu
  $NVCC -dryrun conftest.cu > conftest.err 2>&1
  cuda_top=`$SED -n 's/^#@S|@ TOP=//p' conftest.err` # empty if nvcc finds no compiler for C++
  cuda_reason=`$SED 1q conftest.err`
  rm -f conftest.cu conftest.err
  AS_IF([test -d "$cuda_top"], [cuda_top=`cd "$cuda_top" && pwd`])
  AS_IF([test -f "$cuda_top/include/cuda_runtime_api.h"], [
    cuda_lib=
    for dir in "$cuda_top/lib64" "$cuda_top/lib" "$cuda_top/targets/x86_64-linux/lib"; do
      AS_IF([test -z "$cuda_lib" && test -f "$dir/libcudart_static.a"], [cuda_lib=$dir])
    done
    AS_IF([test -n "$cuda_lib"], [have_cuda=yes], [cuda_reason="no libcudart_static.a in $cuda_top"])
  ], [test -z "$cuda_top"], [cuda_reason="nvcc says: $cuda_reason (Debian: g++)"],
  [cuda_reason="no cuda_runtime_api.h in '$cuda_top'"])
  AC_MSG_RESULT([${cuda_top:-none}])
  AS_IF([test $have_cuda = yes], [
    CUDA_CPPFLAGS="-isystem $cuda_top/include"
    CUDA_LIBS="-L$cuda_lib -lcudart_static -lpthread -ldl -lrt"
    AS_IF([test -z "$NVCCFLAGS"],
      [NVCCFLAGS='-O3 -gencode arch=compute_80,code=sm_80 -gencode arch=compute_80,code=sm_90 -gencode arch=compute_80,code=sm_100 -gencode arch=compute_80,code=compute_80'])
    cuda_reason=`$NVCC --version | $SED -n 's/.*release \([[0-9.]]*\),.*/nvcc \1/p'`
  ])
])

# $1 name, $2 its id in calls.def, $3 header, $4 folder among the wheels. Only its header is needed to build: the library is
# opened at run time, from these folders among others.
AC_DEFUN([AX_DPT_CUDA_LIBRARY], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=auto|no|DIR], [$1 for the cuda backend (DIR holds include and lib)])], [], [with_$1=auto])
  have_$1=no $1_reason=
  AS_IF([test "$with_$1" = no], [$1_reason="--with-$1=no"], [test $have_cuda = no], [$1_reason="no cuda backend"], [
    AS_CASE([$with_$1], [auto|yes], [dpt_folder=${with_cuda_libs:+$with_cuda_libs/$4}], [dpt_folder=$with_$1])
    dpt_save_cppflags=$CPPFLAGS
    dpt_include=${dpt_folder:+-isystem $dpt_folder/include}
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS $dpt_include"
    AC_CHECK_HEADER([$3], [have_$1=yes], [$1_reason="$3 not found"])
    CPPFLAGS=$dpt_save_cppflags
    AS_IF([test $have_$1 = no && test "$with_$1" != auto], [AC_MSG_ERROR([--with-$1=$with_$1: $$1_reason])])
    AS_IF([test $have_$1 = no && test -n "$dpt_folder" && test -f "$dpt_folder/include/$3"],
      [AC_MSG_ERROR([$3 in $dpt_folder does not compile with $cuda_top, see config.log; --with-$1=no builds without it])])
  ])
  AM_CONDITIONAL([HAVE_$2], [test $have_$1 = yes])
  AS_IF([test $have_$1 = yes], [
    AC_DEFINE([HAVE_$2], [1], [The cuda module is built for $1.])
    AS_CASE([" $CUDA_CPPFLAGS "], [*" $dpt_include "*], [], [CUDA_CPPFLAGS="$CUDA_CPPFLAGS $dpt_include"])
    AS_IF([test -n "$dpt_folder"], [CUDA_FOLDERS="${CUDA_FOLDERS:+$CUDA_FOLDERS:}$dpt_folder/lib"])
  ])
])
