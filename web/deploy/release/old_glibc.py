# SPDX-License-Identifier: Apache-2.0
"""What gcc links dptrain with so that it runs with the glibc of static_libraries.GLIBC. The versions of symbols decide that, not headers: they
come from ziglang, as libraries that have the symbols alone. Debian's static libraries are linked; shared ones that need no newer glibc are
packed with the program: oneDNN from PyPI, libgomp of Debian 11, HDF5 built from Debian's source. All but Debian's static libraries is kept
as those of static_libraries.py are."""
import fcntl
import glob
import hashlib
import inspect
import os
import re
import shutil
import tempfile

import project
import sbom
import static_libraries

LIBDIR = "/usr/lib/x86_64-linux-gnu"
WHEELS = [("onednn-cpu-gomp", "2023.2.0", "2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb"),  # oneDNN 3.2
          ("onednn-devel-cpu-gomp", "2023.2.0", "9763c69e8c907e119056bd52ad918ca84ac9ba939d130a99dfa95ccca3e5e284")]
GOMP = [("gcc-10-base", "10.2.1-6", "be65535e94f95fbf04b104e8ab36790476f063374430f7dfc6c516cbe2d2cd1e"),  # the licence is in it
        ("libgomp1", "10.2.1-6", "4530c95aefa48e33fd8cf4acbe5c4b559dbe7bdf4c56469986c83a203982cef1")]
HDF5 = ("hdf5", "1.10.8+repack1-1", "3c9b7c438f174506fd2764b77437466fd528374aeab9db9c73c59ceee6ac990d",
        ["--disable-static", "--disable-tests", "--disable-tools", "--disable-hl", "--disable-embedded-libinfo", "--enable-build-mode=production"])
CFLAGS = "-O2 -ffile-prefix-map=%s=."
MODULES = ["jansson", "yaml-0.1", "libpcre2-8", "libutf8proc", "libjpeg", "libpng", "libwebp", "libwebpdemux", "libtiff-4", "snappy", "libzstd",
           "liblz4", "zlib"]
PARTS = r"\S+/(?:Scrt1\.o|lib(?:c|dl|ld|m|pthread|rt)\.so\.\d|libc_nonshared\.a)(?=\s)"  # of what ziglang links a program with
ABSENT = """/* What objects compiled with newer headers of glibc and libstdc++ refer to; libstdc++ of gcc 4.8 has the rest. */
#define PRIVATE __attribute__((visibility("hidden")))
void _ZSt17__throw_bad_allocv(void);
PRIVATE char __libc_single_threaded;
PRIVATE void _ZSt28__throw_bad_array_new_lengthv(void) { _ZSt17__throw_bad_allocv(); }
"""


def make_symbols(system, folder):
    """Fills a folder that gcc takes the C library from."""
    os.makedirs(folder)
    source = folder + "/program.c"
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void) { return 0; }\n")
    said = project.run([static_libraries.compiler(), "cc", "-target", system.target, "-fno-sanitize=undefined", "-pie", "-v", source, "-o", folder + "/program",
                        "-ldl", "-lm", "-lpthread", "-lrt"], env=system.environment)
    for path in set(re.findall(PARTS, said)):
        shutil.copy(path, folder)
        if ".so." in path:
            name = os.path.basename(path)
            os.symlink(name, f"{folder}/{name.partition('.so.')[0]}.so")
    shutil.copy(folder + "/Scrt1.o", folder + "/crt1.o")
    os.remove(folder + "/libc.so")
    with open(folder + "/libc.so", "w", encoding="ascii") as f:
        f.write("GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )\n")
    with open(source, "w", encoding="ascii") as f:
        f.write(ABSENT)
    project.run(["gcc", "-O2", "-fPIC", "-c", source, "-o", folder + "/absent.o"])
    project.run(["ar", "rcD", folder + "/libabsent.a", folder + "/absent.o"])


def make_onednn(folder):
    """Unpacks oneDNN and libgomp below folder/onednn."""
    with tempfile.TemporaryDirectory() as place:
        with open(place + "/wanted", "w", encoding="ascii") as f:
            f.writelines(f"{name}=={version} --hash=sha256:{digest}\n" for name, version, digest in WHEELS)
        project.run(["python3", "-m", "pip", "download", "-q", "--no-deps", "--require-hashes", "-d", place, "-r", place + "/wanted"])
        for wheel in glob.glob(place + "/*.whl"):
            shutil.unpack_archive(wheel, place + "/unpacked", "zip")
        for data in glob.glob(place + "/unpacked/*.data/data"):
            shutil.copytree(data, folder + "/onednn", dirs_exist_ok=True)
        for name, version, digest in GOMP:
            static_libraries.fetch(f"g/gcc-10/{name}_{version}_amd64.deb", digest, place)
            project.run(["dpkg-deb", "-x", f"{place}/{name}_{version}_amd64.deb", place + "/gomp"])
        shutil.copy(f"{place}/gomp{LIBDIR}/libgomp.so.1", folder + "/onednn/lib")
        shutil.copy(f"{place}/gomp/usr/share/doc/gcc-10-base/copyright", folder + "/onednn/gomp-copyright")
    library = folder + "/onednn/lib/libdnnl.so"
    os.remove(library)
    os.symlink("libdnnl.so.3", library)


def make_hdf5(system, folder):
    """Builds a shared libhdf5 with the zlib of static_libraries.py, and its headers, below folder/hdf5."""
    name, version, digest, words = HDF5
    with tempfile.TemporaryDirectory() as place:
        top = static_libraries.unpack(name, version, digest, place)
        built = top + "/dptrack-build"
        os.makedirs(built)
        project.run(["../configure", "--prefix=/", *words, f"--with-zlib={system.folder}/usr", "CC=" + compiler("gcc", folder), "CFLAGS=" + CFLAGS % top], cwd=built)
        project.run(["make", f"-j{os.cpu_count()}", "-C", "src", "install", f"DESTDIR={folder}/hdf5"], cwd=built)
        shutil.copy(top + "/debian/copyright", folder + "/hdf5/copyright")


def compiler(name, folder):
    return f"{name} -B{folder}/glibc"


def recipe():
    decides = [static_libraries.recipe(), WHEELS, GOMP, HDF5, CFLAGS, PARTS, ABSENT, *map(inspect.getsource, (make_symbols, make_onednn, make_hdf5))]
    return hashlib.sha256(repr(decides).encode()).hexdigest()[:12]


class Linking:
    """system: static_libraries.System of this machine's processor, prepared."""

    def __init__(self, system):
        self.system, self.archives = system, {}
        self.folder = os.path.join(static_libraries.cache(), f"gcc-{static_libraries.GLIBC}-{recipe()}")

    def missing(self):
        return not os.path.exists(self.folder + "/complete")

    def prepare(self):
        """Makes what is not there yet."""
        with open(self.folder + ".lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing():
                print(f"release: preparing oneDNN, building {HDF5[0]} {HDF5[1]} for glibc {static_libraries.GLIBC}", flush=True)
                shutil.rmtree(self.folder, ignore_errors=True)
                make_symbols(self.system, self.folder + "/glibc")
                make_onednn(self.folder)
                make_hdf5(self.system, self.folder)
                with open(self.folder + "/complete", "w", encoding="ascii"):
                    pass

    def link_archives(self, folder):
        """Fills a folder that is searched first with Debian's static libraries."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in set(re.findall(r"(?<!\S)-l(\S+)", project.run(["pkg-config", "--static", "--libs", *MODULES]))) - {"m", "pthread"}:
            self.archives[name] = f"{LIBDIR}/lib{name}.a"
            os.symlink(self.archives[name], f"{folder}/lib{name}.a")

    def words(self, archives):
        """For configure; archives: the folder of link_archives. Transports are linked with shared libraries of the machine."""
        def libraries(module):
            return project.run(["pkg-config", "--static", "--libs", module]).strip()

        flags = f"-L{archives} -L{self.folder}/glibc -Wl,--allow-shlib-undefined -Wl,-z,text"
        return ["CC=" + compiler("gcc", self.folder), "CXX=" + compiler("g++", self.folder), "LDFLAGS=" + flags, f"--with-onednn={self.folder}/onednn",
                "TIFF_LIBS=" + libraries("libtiff-4"), f"SNAPPY_LIBS={libraries('snappy')} -labsent -lstdc++",
                f"HDF5_CFLAGS=-I{self.folder}/hdf5/include", f"HDF5_LIBS=-L{self.folder}/hdf5/lib -lhdf5"]

    def libraries_word(self):
        """For make, in place of configure's, whose search path would leave its length in the module."""
        return f"ONEDNN_LIBS=-L{self.folder}/onednn/lib -ldnnl"

    def packed(self):
        """{name as the loader knows it: path} of the shared libraries that go with the program."""
        found = [f"{self.folder}/onednn/lib/libdnnl.so.3", f"{self.folder}/onednn/lib/libgomp.so.1", f"{self.folder}/hdf5/lib/libhdf5.so.103"]
        return {os.path.basename(path): path for path in found}

    def licences(self):
        """{(package, version, architecture or origin): text} of all libraries but those of the system."""
        own = [(*WHEELS[0][:2], "pypi", "onednn/share/doc/onednn/LICENSE"), (*GOMP[1][:2], "amd64", "onednn/gomp-copyright"), (*HDF5[:2], "source", "hdf5/copyright")]
        texts = {(name, version, origin): static_libraries.read(f"{self.folder}/{path}") for name, version, origin, path in own}
        for package in map(project.owner, self.archives.values()):
            texts[package, sbom.installed_version(package), "amd64"] = static_libraries.read(f"/usr/share/doc/{package}/copyright")
        texts[own[0][:3]] += b"\n" + static_libraries.read(f"{self.folder}/onednn/share/doc/onednn/THIRD-PARTY-PROGRAMS")
        return texts
