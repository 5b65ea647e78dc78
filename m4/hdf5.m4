# SPDX-License-Identifier: Apache-2.0
# AX_DPT_HDF5: HDF5_SONAME, the library that is opened by name, and its headers.
AC_DEFUN([AX_DPT_HDF5], [
  have_hdf5=no hdf5_reason="hdf5-serial not found"
  PKG_CHECK_MODULES([HDF5], [hdf5-serial], [
    hdf5_reason="no shared libhdf5 can be linked" dpt_soname=
    dpt_save_CPPFLAGS=$CPPFLAGS dpt_save_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $HDF5_CFLAGS" LIBS="$LIBS $HDF5_LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <hdf5.h>]], [[return H5open();]])],
      [dpt_soname=`$OBJDUMP -p conftest$ac_exeext | sed -n 's/^ *NEEDED *\(libhdf5.*\)/\1/p'`])
    CPPFLAGS=$dpt_save_CPPFLAGS LIBS=$dpt_save_LIBS
    AS_IF([test -n "$dpt_soname"], [
      have_hdf5=yes hdf5_reason=
      AC_DEFINE([HAVE_HDF5], [1], [Arrays in HDF5 files can be read.])
      AC_DEFINE_UNQUOTED([HDF5_SONAME], ["$dpt_soname"], [The HDF5 library, which is opened by name.])
    ])
  ], [:])
])
