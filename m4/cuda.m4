# AX_DPT_CUDA: --with-cuda, --with-cudnn, --with-nccl. nvcc decides whether the cuda module is built; cuDNN and
# NCCL are probed and reported.
AC_DEFUN([AX_DPT_CUDA], [
  AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=auto|no|DIR], [CUDA toolkit for the cuda backend])], [], [with_cuda=auto])
  AC_ARG_VAR([NVCC], [CUDA compiler])
  AC_ARG_VAR([NVCCFLAGS], [flags for the CUDA compiler])
  have_cuda=no cuda_reason=
  AS_IF([test "$with_cuda" = no], [cuda_reason="--with-cuda=no"], [cuda_reason="under construction"])
  AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
])
