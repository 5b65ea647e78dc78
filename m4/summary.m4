# SPDX-License-Identifier: Apache-2.0
# AX_DPT_LINE([label], [name], [what is lost without it], [Debian packages]): adds a line to the summary, from have_name and name_reason.
AC_DEFUN([AX_DPT_LINE], [
  AS_IF([test "$have_$2" = yes], [dpt_words="yes${$2_reason:+ ($$2_reason)}"],
    [dpt_words="no: $3 ($$2_reason[]m4_ifval([$4], [; Debian: $4]))"])
  dpt_summary="$dpt_summary
  $1$dpt_words"
])

# AX_DPT_SUMMARY: what was found; of the rest what its absence costs, why it was not found and which packages bring it.
AC_DEFUN([AX_DPT_SUMMARY], [
  dpt_summary="dptrack $VERSION, prefix $prefix
  ref backend    yes (f64, built in)"
  AX_DPT_LINE([cpu backend    ], [onednn], [training in f64 alone, on one thread], [libdnnl-dev])
  AX_DPT_LINE([cuda backend   ], [cuda], [no training on GPUs])
  AS_IF([test $have_cuda = yes], [
    AX_DPT_LINE([  cuBLASLt     ], [cublas], [matrix products by own kernels])
    AX_DPT_LINE([  cuDNN        ], [cudnn], [convolutions by own kernels])
    AX_DPT_LINE([  NCCL         ], [nccl], [no jobs on several GPUs])
    AX_DPT_LINE([  NVRTC        ], [nvrtc], [cuDNN finds no NVRTC by itself])
  ])
  AX_DPT_LINE([image folders  ], [images], [JPEG and PNG files cannot be read], [libjpeg62-turbo-dev libpng-dev])
  AX_DPT_LINE([  WebP         ], [webp], [.webp files are left out], [libwebp-dev])
  AX_DPT_LINE([  TIFF         ], [tiff], [.tif files are left out], [libtiff-dev])
  AX_DPT_LINE([Snappy         ], [snappy], [most Parquet files cannot be read], [libsnappy-dev])
  AX_DPT_LINE([Zstandard      ], [zstd], [texts and Parquet files that it compressed cannot be read], [libzstd-dev])
  AX_DPT_LINE([LZ4            ], [lz4], [Parquet and Arrow files that it compressed cannot be read], [liblz4-dev])
  AX_DPT_LINE([tokenizers     ], [tokenizers], [texts are tokenised as bytes alone], [libpcre2-dev libutf8proc-dev])
  AX_DPT_LINE([HDF5           ], [hdf5], [arrays in HDF5 files cannot be read], [libhdf5-dev])
  AX_DPT_LINE([YAML           ], [yaml], [--config and sweeps read JSON alone], [libyaml-dev])
  AX_DPT_LINE([ucx transport  ], [ucx], [jobs on several machines need MPI], [libucx-dev])
  AX_DPT_LINE([mpi transport  ], [mpi], [ranks that mpirun or srun starts cannot use MPI between machines], [libopenmpi-dev])
  AX_DPT_LINE([PostgreSQL     ], [libpq], [a store is a folder, never a database server's], [libpq-dev])
  AX_DPT_LINE([early refusals ], [gnutls], [over TLS a request that is refused is answered after its whole body], [libgnutls28-dev])
  AX_DPT_LINE([sign-in by OIDC], [cjose], [tokens alone open the server, serve --oidc is refused], [libcjose-dev])
  AX_DPT_LINE([page           ], [ui], [the server shows a page that only says so], [nodejs curl ca-certificates])
  AX_DPT_LINE([unit tests     ], [cmocka], [make check leaves out the tests in C], [libcmocka-dev])
  AX_DPT_LINE([test runner    ], [python3], [make check cannot run], [python3])
  AC_MSG_NOTICE([
$dpt_summary
  sanitizers     $enable_sanitizers])
])
