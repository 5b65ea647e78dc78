# SPDX-License-Identifier: Apache-2.0
"""Builds the libcurl of the wheels: Debian's source, with HTTP and HTTPS through the GnuTLS that the server needs as well.
Debian's own library would bring 20 more libraries (SSH, LDAP, Kerberos, OpenSSL), 4 MB of the wheel. Its symbols have
the version that Debian's have, because HDF5 is linked with those."""
import glob
import os
import shutil

import programs
import project

PACKAGE = "libcurl4" if not os.path.exists("/var/lib/dpkg/info/libcurl4t64:amd64.list") else "libcurl4t64"
PROTOCOLS = ["dict", "file", "ftp", "gopher", "imap", "ldap", "ldaps", "mqtt", "pop3", "rtsp", "smb", "smtp", "telnet", "tftp"]
LIBRARIES = ["brotli", "libpsl", "librtmp", "libssh2", "nghttp2", "zstd"]
OPTIONS = ["--disable-static", "--disable-manual", "--disable-dependency-tracking", "--enable-versioned-symbols",
           "--with-gnutls", "--with-ca-bundle=/etc/ssl/certs/ca-certificates.crt",
           *("--disable-" + name for name in PROTOCOLS), *("--without-" + name for name in LIBRARIES)]


def source(folder):
    """Unpacks the source of the installed version; apt verifies it."""
    version = project.run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE])
    targets = project.run(["apt-get", "indextargets", "--format", "$(SITE) $(RELEASE) $(COMPONENT)", "Identifier: Packages"])
    os.makedirs(folder + "/lists/partial")
    with open(folder + "/sources.list", "w", encoding="ascii") as f:
        f.writelines(f"deb-src {line}\n" for line in targets.splitlines())
    settings = ["Dir::Etc::SourceList=" + folder + "/sources.list", "Dir::Etc::SourceParts=-", "Dir::Cache=" + folder,
                "Dir::State::Lists=" + folder + "/lists", "APT::Sandbox::User=root"]
    apt = ["apt-get", "-q", *(word for setting in settings for word in ("-o", setting))]
    project.run([*apt, "update"], cwd=folder)
    project.run([*apt, "source", "curl=" + version], cwd=folder)
    return next(path for path in glob.glob(folder + "/curl-*") if os.path.isdir(path))


def build(folder):
    """Returns the path of libcurl.so.4 in the folder; it is built once."""
    made = os.path.join(folder, "libcurl.so.4")
    if not os.path.exists(made):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        top = source(folder)
        flags = ["CFLAGS=" + programs.CFLAGS % top, *(f for f in programs.FLAGS if "FLAGS=" in f)]
        project.run(["sh", "./configure", *OPTIONS, *flags], cwd=top)
        project.run(["sed", "-i", "s/^CURL_.*/CURL_OPENSSL_4/", top + "/lib/libcurl.vers"])
        project.run(["make", "-C", top + "/lib", f"-j{os.cpu_count()}"])
        shutil.copyfile(os.path.realpath(top + "/lib/.libs/libcurl.so"), made + ".part")
        shutil.rmtree(top)
        os.rename(made + ".part", made)
    return made
