# AX_DPT_SUMMARY: what was found and what is left out, and why.
AC_DEFUN([AX_DPT_SUMMARY], [
  AC_MSG_NOTICE([
dptrack $VERSION, prefix $prefix
  ref backend    yes (f64, built in)
  cpu backend    $have_onednn${onednn_reason:+ ($onednn_reason)}
  cuda backend   $have_cuda${cuda_reason:+ ($cuda_reason)}
    cuBLASLt     $have_cublas${cublas_reason:+ ($cublas_reason)}
    cuDNN        $have_cudnn${cudnn_reason:+ ($cudnn_reason)}
    NCCL         $have_nccl${nccl_reason:+ ($nccl_reason)}
    NVRTC        $have_nvrtc${nvrtc_reason:+ ($nvrtc_reason)}
  image folders  $have_images${images_reason:+ ($images_reason)}
  Parquet packed $packing
  S3 listings    $have_expat${expat_reason:+ ($expat_reason)}
  ucx transport  $have_ucx${ucx_reason:+ ($ucx_reason)}
  mpi transport  $have_mpi${mpi_reason:+ ($mpi_reason)}
  page           $have_ui${ui_reason:+ ($ui_reason)}
  unit tests     $have_cmocka
  sanitizers     $enable_sanitizers])
])
