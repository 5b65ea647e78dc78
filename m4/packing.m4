# SPDX-License-Identifier: Apache-2.0
# AX_DPT_PACKING: how pages of Parquet files may be compressed besides gzip. Files that need a missing library are refused by its name.
AC_DEFUN([AX_DPT_PACKING], [
  AC_ARG_WITH([packing], [AS_HELP_STRING([--with-packing=auto|no], [snappy, zstd and lz4 for Parquet files])], [],
    [with_packing=auto])
  AS_IF([test "$with_packing" = no], [
    have_snappy=no have_zstd=no have_lz4=no
    snappy_reason="--with-packing=no" zstd_reason="--with-packing=no" lz4_reason="--with-packing=no"
  ], [
    AX_DPT_OPTIONAL([snappy], [SNAPPY], [snappy], [Pages by snappy.])
    AX_DPT_OPTIONAL([zstd], [ZSTD], [libzstd], [Pages by zstd.])
    AX_DPT_OPTIONAL([lz4], [LZ4], [liblz4], [Pages by lz4.])
  ])
])
