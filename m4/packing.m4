# AX_DPT_PACKING: what Parquet's pages may be packed by; without a library such files are refused by its name.
AC_DEFUN([AX_DPT_PACKING], [
  AC_ARG_WITH([packing], [AS_HELP_STRING([--with-packing=auto|no], [snappy, zstd and lz4 for Parquet files])], [],
    [with_packing=auto])
  packing=gzip
  AS_IF([test "$with_packing" != no], [
    PKG_CHECK_MODULES([SNAPPY], [snappy], [packing="$packing snappy" AC_DEFINE([HAVE_SNAPPY], [1], [Pages by snappy.])],
      [AC_MSG_NOTICE([snappy is not there (Debian: libsnappy-dev): most Parquet files cannot be read])])
    PKG_CHECK_MODULES([ZSTD], [libzstd], [packing="$packing zstd" AC_DEFINE([HAVE_ZSTD], [1], [Pages by zstd.])],
      [AC_MSG_NOTICE([libzstd is not there (Debian: libzstd-dev)])])
    PKG_CHECK_MODULES([LZ4], [liblz4], [packing="$packing lz4" AC_DEFINE([HAVE_LZ4], [1], [Pages by lz4.])],
      [AC_MSG_NOTICE([liblz4 is not there (Debian: liblz4-dev)])])
  ])
])
