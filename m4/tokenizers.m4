# SPDX-License-Identifier: Apache-2.0
# AX_DPT_TOKENIZERS: PCRE2 and utf8proc read tokenizers from files; without them texts are tokenised as bytes.
AC_DEFUN([AX_DPT_TOKENIZERS], [
  AC_ARG_WITH([tokenizers], [AS_HELP_STRING([--with-tokenizers=auto|no], [PCRE2 and utf8proc for BPE tokenizers])], [],
    [with_tokenizers=auto])
  tokenizers_reason=
  AS_IF([test "$with_tokenizers" = no], [have_tokenizers=no; tokenizers_reason="--with-tokenizers=no"], [
    have_tokenizers=yes
    PKG_CHECK_MODULES([PCRE2], [libpcre2-8 >= 10.40], [],
      [have_tokenizers=no; tokenizers_reason="libpcre2-8 >= 10.40 not found"])
    PKG_CHECK_MODULES([UTF8PROC], [libutf8proc], [],
      [have_tokenizers=no; tokenizers_reason="${tokenizers_reason:+$tokenizers_reason, }libutf8proc not found"])
  ])
  AS_IF([test $have_tokenizers = yes], [AC_DEFINE([HAVE_TOKENIZERS], [1], [Tokenizers can be read from files.])])
  AM_CONDITIONAL([HAVE_TOKENIZERS], [test $have_tokenizers = yes])
])
