# SPDX-License-Identifier: Apache-2.0
"""Builds libraries for other systems than this machine's, static, from Debian's sources, for glibc 2.28, with the C compiler of PyPI's
ziglang. A system's libraries are built once, in $XDG_CACHE_HOME/dptrack-release (~/.cache); a changed row or option builds them again,
in another folder."""
import fcntl
import glob
import hashlib
import inspect
import os
import re
import shutil
import tempfile
import urllib.error
import urllib.request

import project

ZIG = "ziglang==0.15.2"
GLIBC = "2.28"  # RHEL 8, Debian 10, Ubuntu 18.10
CFLAGS = "-O2 -g0 -fPIC -fno-sanitize=undefined -ffile-prefix-map=%s=. -ffile-prefix-map=%s=."
POOLS = ["http://deb.debian.org/debian/pool/main/", "http://snapshot.debian.org/archive/debian/20261201T000000Z/pool/main/"]
PROTOCOLS = ["dict", "file", "ftp", "gopher", "imap", "ldap", "ldaps", "mqtt", "pop3", "rtsp", "smb", "smtp", "telnet", "tftp"]
CURL_LACKS = ["brotli", "libpsl", "librtmp", "libssh2", "nghttp2", "zstd", "libidn2", "ca-bundle", "ca-path"]
GNUTLS_LACKS = ["p11-kit", "idn", "brotli", "zstd", "tpm", "tpm2"]
LIBRARIES = [  # (source package, its version, SHA-256 of its .dsc, words for configure); each needs those above it
    ("zlib", "1:1.2.13.dfsg-1", "3fa1e6b2fc525062aa88207dda52fed8e045373c809d362fe8a2bfbf7cf515a8", []),
    ("gmp", "2:6.2.1+dfsg1-1.1", "2831ed4f83bc3304c2403474b335652ab2dc507cd517de44414d9142171748f0", ["--disable-cxx"]),
    ("nettle", "3.8.1-2", "a437e204da67612efb656cab354835f358b44c077c5c0a46d6e8c30b5c0bddff",
     ["--disable-documentation", "--disable-openssl", "--enable-fat"]),
    ("gnutls28", "3.7.9-2+deb12u7", "027b2f60e38add78ee611d099dbf34e977a6600d446cc39673534b736a182cb6",
     ["--disable-doc", "--disable-tools", "--disable-tests", "--disable-cxx", "--disable-nls", "--disable-libdane",
      "--with-included-libtasn1", "--with-included-unistring", *("--without-" + name for name in GNUTLS_LACKS)]),
    ("jansson", "2.14-2", "6296ddd9c0a022bd1b70074aefb171cfcdf5694a04ffd32b35fd66097621af87", []),
    ("sqlite3", "3.40.1-2+deb12u2", "ee3459ae9d00939741c7708fc1b8ce1bde12d8c3fb1dfa005bbbc8651d884e23", ["--disable-tcl", "--disable-readline"]),
    ("libmicrohttpd", "0.9.75-6", "c0f8a9cd77c41285d2d48fc68bbee2e460a55042fcd5d3f6b9946c017d4b6846",
     ["--disable-doc", "--disable-examples", "--disable-curl", "--enable-https", "LIBS=-lgnutls -lhogweed -lnettle -lgmp"]),
    ("curl", "7.88.1-10+deb12u15", "2744f12e3aef161c0361743fa1b318296b122e566e47f381e4a63320fbcc23f4",
     ["--disable-manual", "--disable-symbol-hiding", "--with-gnutls", *("--disable-" + name for name in PROTOCOLS), *("--without-" + name for name in CURL_LACKS)]),
]
REPLACED = {"gnutls28": [("lib/record.c", "gnutls_record_recv")], "libmicrohttpd": [("src/microhttpd/connection.c", "MHD_queue_response")]}
CURL_PARTS = ["zlib", "gmp", "nettle", "gnutls28", "curl"]
OPENED = ["expat*.h", "cjose", "openssl/*.h", "postgresql/libpq-fe.h", "postgresql/p*_ext.h"]  # of libraries that are opened by name


class System:
    """A processor with glibc, or with musl for programs that need no file of the machine."""

    def __init__(self, processor, libc="gnu"):
        self.processor, self.host, self.is_static = processor, f"{processor}-linux-{libc}", libc == "musl"
        self.target = self.host if self.is_static else f"{self.host}.{GLIBC}"
        self.folder = os.path.join(cache(), f"{self.target}-{recipe()}")
        self.include = self.folder + "/usr/include"
        self.environment = None

    def missing(self):
        """The libraries that prepare would build."""
        return [name for name, _, _, _ in LIBRARIES if not os.path.exists(f"{self.folder}/licences/{name}")]

    def prepare(self):
        """Builds what is not there yet; afterwards `environment` is that of a configure for this system."""
        zig, at = compiler(), self.folder + "/usr"
        self.environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache() + "/zig", "ZIG_LOCAL_CACHE_DIR": cache() + "/zig",
                            "PKG_CONFIG": "pkg-config --static", "PKG_CONFIG_LIBDIR": at + "/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": self.folder,
                            "CC": f"{zig} cc -target {self.target}", "AR": zig + " ar", "RANLIB": zig + " ranlib", "CXX": "false",
                            "CC_FOR_BUILD": "gcc", "CROSS_BUILDING": "yes", "CHOST": self.host, "CPPFLAGS": f"-I{self.include}", "LDFLAGS": f"-L{at}/lib"}
        with open(self.folder + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            missing = self.missing()
            for name, version, digest, words in (row for row in LIBRARIES if row[0] in missing):
                print(f"release: building {name} {version} for {self.target}", flush=True)
                with tempfile.TemporaryDirectory(dir=cache()) as folder:
                    self.build(name, unpack(name, version, digest, folder), words)
            link_headers(self.include)

    def configure_words(self):
        return [f"--host={self.host}", "--build=x86_64-pc-linux-gnu"]

    def build(self, name, top, words):
        env = {**self.environment, "CFLAGS": CFLAGS % (top, self.folder)}
        if name == "zlib":
            words = ["--prefix=/usr", "--static"]  # its configure is not autoconf's
        else:
            words = [*self.configure_words(), "--prefix=/usr", "--libdir=/usr/lib", "--sysconfdir=/etc", "--localstatedir=/var",
                     "--disable-shared", "--enable-static", *words]
        if not os.path.exists(top + "/configure"):
            project.run(["autoreconf", "-fi"], cwd=top)
        if name == "gmp":  # Debian removed the folder, but not from configure
            os.makedirs(top + "/doc", exist_ok=True)
            with open(top + "/doc/Makefile.in", "w", encoding="ascii") as f:
                f.write("all install:\n")
        for file, function in REPLACED.get(name, []):
            make_replaceable(f"{top}/{file}", function)
        project.run(["sh", "./configure", *words], cwd=top, env=env)
        project.run(["make", f"-j{os.cpu_count()}", *(["libz.a"] if name == "zlib" else [])], cwd=top, env=env)
        project.run(["make", "install", "DESTDIR=" + self.folder], cwd=top, env=env)
        for path in glob.glob(self.folder + "/usr/lib/*.la"):
            os.remove(path)  # libtool would look for what it names in /usr
        os.makedirs(self.folder + "/licences", exist_ok=True)
        shutil.copy(top + "/debian/copyright", f"{self.folder}/licences/{name}")

    def licences(self, names=None):
        """{(source package, version, architecture): text} of all libraries, or of those with these names."""
        return {(name, version, "source"): read(f"{self.folder}/licences/{name}") for name, version, _, _ in LIBRARIES if not names or name in names}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def cache():
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "dptrack-release")


def recipe():
    """A name for everything that decides what the libraries are."""
    decides = [ZIG, CFLAGS, LIBRARIES, inspect.getsource(System.build), REPLACED, inspect.getsource(make_replaceable)]
    return hashlib.sha256(repr(decides).encode()).hexdigest()[:12]


def compiler():
    """The path of zig; it is installed once."""
    folder = os.path.join(cache(), ZIG.replace("==", "-"))
    if not os.path.exists(folder):
        shutil.rmtree(folder + ".part", ignore_errors=True)
        project.run(["python3", "-m", "pip", "install", "-q", "--no-deps", "--target", folder + ".part", ZIG])
        os.rename(folder + ".part", folder)
    return folder + "/ziglang/zig"


def fetch(path, digest, folder):
    """Downloads a file of Debian's pool into the folder; Failure unless it is the one that the digest names."""
    reasons = []
    for pool in POOLS:
        try:
            with urllib.request.urlopen(pool + path, timeout=60) as reply:
                data = reply.read()
        except (urllib.error.URLError, OSError) as failed:
            reasons.append(f"{pool}{path}: {failed}")
            continue
        if hashlib.sha256(data).hexdigest() != digest:
            raise project.Failure(f"{pool}{path} is not the file that static_libraries.py names")
        with open(os.path.join(folder, os.path.basename(path)), "wb") as f:
            f.write(data)
        return data
    raise project.Failure("; ".join(reasons) + "; where Debian has a newer version, name that in LIBRARIES of static_libraries.py")


def unpack(name, version, digest, folder):
    """Unpacks a source package with Debian's changes; its .dsc has the digests of its other files. Returns the folder."""
    place, description = f"{name[:4] if name.startswith('lib') else name[0]}/{name}/", f"{name}_{version.rpartition(':')[2]}.dsc"
    said = fetch(place + description, digest, folder).decode()
    for inner, file in re.findall(r"^ ([0-9a-f]{64}) \d+ (\S+)$", said, re.MULTILINE):
        fetch(place + file, inner, folder)
    top = folder + "/source"
    project.run(["dpkg-source", "-x", f"{folder}/{description}", top], cwd=folder)
    return top


def make_replaceable(path, name):
    """The server replaces this function of a library, as it does with shared ones; it finds the library's own as library_NAME."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    with open(path, "w", encoding="utf-8") as f:
        f.write(f'#pragma weak {name}\n{text}\nextern __typeof__({name}) library_{name} __attribute__((alias("{name}")));\n')


def link_headers(folder):
    """This machine's headers of libraries that the programs open by name are the same on every system."""
    for place in ("/usr/include", "/usr/include/x86_64-linux-gnu"):
        for path in (path for pattern in OPENED for path in glob.glob(f"{place}/{pattern}")):
            to = os.path.join(folder, os.path.relpath(path, place).removeprefix("postgresql/"))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            if not os.path.lexists(to):
                os.symlink(path, to)


def make_curl(system, to):
    """Makes the shared libcurl with all that it needs. Its symbols have the version that Debian's have, because HDF5 is linked with those."""
    with open(to + ".map", "w", encoding="ascii") as f:
        f.write("CURL_OPENSSL_4 { global: curl_*; local: *; };\n")
    libraries = project.run(["pkg-config", "--static", "--libs", "libcurl"], env=system.environment).split()
    project.run([*system.environment["CC"].split(), "-shared", "-o", to, "-Wl,-soname,libcurl.so.4", "-Wl,-s,-z,now,-z,relro",
                 f"-Wl,--version-script={to}.map", "-Wl,--whole-archive", system.folder + "/usr/lib/libcurl.a", "-Wl,--no-whole-archive", *libraries],
                env=system.environment)
