# SPDX-License-Identifier: Apache-2.0
# AX_DPT_IMAGES: libjpeg-turbo and libpng read folders of images; without them dptrain trains on everything else. libwebp
# and libtiff read further kinds of pictures, each without the other.
AC_DEFUN([AX_DPT_IMAGES], [
  AC_ARG_WITH([images], [AS_HELP_STRING([--with-images=auto|no], [libjpeg-turbo, libpng, libwebp and libtiff for folders of images])], [],
    [with_images=auto])
  images_reason=
  AS_IF([test "$with_images" = no], [have_images=no; images_reason="--with-images=no"], [
    have_images=yes
    PKG_CHECK_MODULES([JPEG], [libjpeg], [], [have_images=no; images_reason="libjpeg not found"])
    PKG_CHECK_MODULES([PNG], [libpng >= 1.6], [], [have_images=no; images_reason="${images_reason:+$images_reason, }libpng >= 1.6 not found"])
  ])
  dnl entropy.c takes the place of one function of libjpeg-turbo's
  AS_IF([test $have_images = yes], [
    dpt_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $JPEG_CFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
      #include <stdio.h>
      #include <jpeglib.h>
      #include <jpegint.h>
      #ifndef LIBJPEG_TURBO_VERSION
      #error not libjpeg-turbo
      #endif
      ]], [[struct jpeg_entropy_decoder e = { 0 }; return e.decode_mcu != 0;]])],
      [AC_DEFINE([HAVE_JPEGINT_H], [1], [jpegint.h of libjpeg-turbo is there])])
    CPPFLAGS=$dpt_save_CPPFLAGS
  ])
  AM_CONDITIONAL([HAVE_IMAGES], [test $have_images = yes])
  AS_IF([test "$with_images" = no], [
    have_webp=no have_tiff=no
    webp_reason="--with-images=no" tiff_reason="--with-images=no"
  ], [
    AX_DPT_OPTIONAL([webp], [WEBP], [libwebp libwebpdemux], [Pictures in WebP.])
    AX_DPT_OPTIONAL([tiff], [TIFF], [libtiff-4 >= 4.5], [Pictures in TIFF.])
  ])
  AM_CONDITIONAL([HAVE_WEBP], [test $have_webp = yes])
  AM_CONDITIONAL([HAVE_TIFF], [test $have_tiff = yes])
])
