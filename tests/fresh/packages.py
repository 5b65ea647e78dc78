# SPDX-License-Identifier: Apache-2.0
"""Packages that a build needs, and those that it can do without."""
REQUIRED = ["gcc", "make", "autoconf", "automake", "libtool", "pkg-config", "libc6-dev", "zlib1g-dev", "libjansson-dev",
            "libsqlite3-dev", "libmicrohttpd-dev", "libcurl4-openssl-dev", "libexpat1-dev"]

# nvcc is in no package of Debian's main archive: it is always absent.
OPTIONAL = {
    "libpq": ["libpq-dev"],
    "gnutls": ["libgnutls28-dev"],
    "cjose": ["libcjose-dev"],
    "onednn": ["libdnnl-dev"],
    "ucx": ["libucx-dev"],
    "mpi": ["libopenmpi-dev"],
    "snappy": ["libsnappy-dev"],
    "zstd": ["libzstd-dev"],
    "lz4": ["liblz4-dev"],
    "yaml": ["libyaml-dev"],
    "hdf5": ["libhdf5-dev"],
    "jpeg": ["libjpeg62-turbo-dev"],
    "png": ["libpng-dev"],
    "webp": ["libwebp-dev"],
    "tiff": ["libtiff-dev"],
    "pcre2": ["libpcre2-dev"],
    "utf8proc": ["libutf8proc-dev"],
    "cmocka": ["libcmocka-dev"],
    "python3": ["python3", "python3-minimal"],
    "node": ["nodejs", "curl"],
}
