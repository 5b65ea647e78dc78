# SPDX-License-Identifier: Apache-2.0
"""Settings of this machine that package registries need: apt's mirror and proxies, pip's and npm's, certificates."""
import configparser
import glob
import os
import re
import shutil
import subprocess

MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
CERTIFICATES = "/usr/local/share/ca-certificates/*.crt"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"  # generated from CERTIFICATES and others by the package ca-certificates
VARIABLES = re.compile(r"(https?|ftp|no|all)_proxy|pip_.*|npm_config_.*|ssl_cert_file|node_extra_ca_certs|"
                       r"requests_ca_bundle|curl_ca_bundle|git_ssl_cainfo", re.IGNORECASE)
PIP_FILES = "/etc/xdg/pip/pip.conf", "/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf"
NPM_FILES = "/etc/npmrc", "/usr/etc/npmrc", "~/.npmrc"
NPM_KEYS = "registry", "cafile", "proxy", "https-proxy", "noproxy", "strict-ssl"
APT_KEYS = re.compile(r"Acquire::(https?::|Retries|Check-|Max-ValidTime)")


def output(*words):
    if not shutil.which(words[0]):
        return ""
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout


def lines_of(path):
    try:
        with open(os.path.expanduser(path), encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()
    except OSError:
        return []


def write(root, path, text):
    place = root + path
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w", encoding="utf-8") as f:
        f.write(text)


def apt_sources(codename):
    """Lines for sources.list: this machine's mirror for its own release, with the name of another release."""
    here = dict(line.split("=", 1) for line in lines_of("/etc/os-release") if "=" in line).get("VERSION_CODENAME", "")
    suites = {"": MIRROR}
    targets = output("apt-get", "indextargets", "--format", "$(RELEASE) $(SITE) $(COMPONENT)", "Identifier: Packages")
    for line in targets.splitlines():
        release, site, component = line.split()
        if here and release.startswith(here) and component == "main":
            suites[release[len(here):]] = site
    return [f"deb {site} {codename}{suffix} main" for suffix, site in suites.items() if codename != "sid" or not suffix]


def apt_options():
    return [line for line in output("apt-config", "dump").splitlines() if APT_KEYS.match(line)]


def pip_config():
    merged = configparser.ConfigParser(interpolation=None)
    merged.read([os.path.expanduser(path) for path in PIP_FILES])
    return ["[global]", *(f"{key} = {value}" for key, value in (merged["global"] if "global" in merged else {}).items())]


def npm_config():
    return [line for path in NPM_FILES for line in lines_of(path) if line.partition("=")[0].strip() in NPM_KEYS]


def environment():
    return {name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)}


def named():
    """Files and folders named in the settings of pip and npm."""
    words = " ".join([*pip_config(), *npm_config(), *environment().values()]).replace("file://", "").replace("=", " ")
    return sorted({os.path.normpath(word) for word in words.split() if word.startswith("/") and os.path.exists(word)})


def folders():
    """Registries on this machine's disk. The pages of an index, by its convention a folder "simple", name files outside of it."""
    places = {os.path.dirname(path) if os.path.basename(path) == "simple" else path for path in named() if os.path.isdir(path)}
    return sorted(path for path in places if not re.match(r"/(etc|usr)(/|$)|/$", path))


def copy(root, path):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    shutil.copy(path, root + path)


def apply(root, codename):
    """Writes the settings into a fresh root."""
    write(root, "/etc/apt/sources.list", "\n".join(apt_sources(codename)) + "\n")
    write(root, "/etc/apt/apt.conf.d/80registries", "\n".join(apt_options()) + "\n")
    write(root, "/etc/pip.conf", "\n".join(pip_config()) + "\n")
    for home in ("/root", "/etc/skel"):
        write(root, home + "/.npmrc", "\n".join(npm_config()) + "\n")
    write(root, "/etc/hosts", "127.0.0.1 localhost fresh\n::1 localhost\n")
    for path in {"/etc/resolv.conf", *glob.glob(CERTIFICATES), *named()} - {BUNDLE}:
        if os.path.isfile(path):
            copy(root, path)
