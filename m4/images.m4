# AX_DPT_IMAGES: libjpeg-turbo and libpng read folders of images; without them dptrain trains on everything else.
AC_DEFUN([AX_DPT_IMAGES], [
  AC_ARG_WITH([images], [AS_HELP_STRING([--with-images=auto|no], [libjpeg-turbo and libpng for folders of images])], [],
    [with_images=auto])
  images_reason=
  AS_IF([test "$with_images" = no], [have_images=no; images_reason="--with-images=no"], [
    have_images=yes
    PKG_CHECK_MODULES([JPEG], [libjpeg], [], [have_images=no; images_reason="libjpeg not found (Debian: libjpeg62-turbo-dev)"])
    PKG_CHECK_MODULES([PNG], [libpng >= 1.6], [], [have_images=no; images_reason="libpng not found (Debian: libpng-dev)"])
  ])
  AM_CONDITIONAL([HAVE_IMAGES], [test $have_images = yes])
])
