# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release, as CycloneDX 1.5 in JSON: its files, the libraries in the wheels, the packages in
the page and those in the image."""
import hashlib
import json
import os
import re
import time
import uuid

import project

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_DNS, "dptrack")


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def file_component(path):
    return {"type": "file", "bom-ref": "file:" + os.path.basename(path), "name": os.path.basename(path),
            "hashes": [{"alg": "SHA-256", "content": digest(path)}]}


def library_component(name, version, architecture):
    """Of Debian, or of PyPI, which is then the architecture."""
    if architecture == "pypi":
        return {"type": "library", "bom-ref": f"pkg:pypi/{name}@{version}", "name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
    return {"type": "library", "bom-ref": f"pkg:deb/debian/{name}@{version}?arch={architecture}", "name": name, "version": version,
            "purl": f"pkg:deb/debian/{name}@{version.replace('+', '%2B').replace(':', '%3A')}?arch={architecture}"}


def installed_version(package):
    return project.run(["dpkg-query", "-W", "-f", "${Version}\n", package]).split()[0]


def page_components():
    """The npm packages whose code is in the page: those that are not for development alone."""
    locked = json.loads(project.text("web/ui/package-lock.json"))["packages"]
    for path, package in sorted(locked.items()):
        if path and not package.get("dev") and not package.get("optional"):
            name = path.rpartition("node_modules/")[2]
            purl = f"pkg:npm/{name.replace('@', '%40')}@{package['version']}"
            found = {"type": "library", "bom-ref": purl, "name": name, "version": package["version"], "purl": purl}
            if package.get("license"):
                found["licenses"] = [{"expression": package["license"]}]
            yield found


def theme_component():
    """The theme of the documents, whose code is in their pages."""
    version = re.search(r"^mkdocs-material==(\S+)$", project.text("web/site/requirements.txt"), re.MULTILINE)[1]
    purl = "pkg:pypi/mkdocs-material@" + version
    return {"type": "library", "bom-ref": purl, "name": "mkdocs-material", "version": version, "purl": purl,
            "licenses": [{"license": {"id": "MIT"}}]}


def bill(files, bundled, image):
    """files: paths; bundled: {wheel: [(package, version, architecture)]}; image: {package: version} or an empty one."""
    installed = [(name, version, "amd64") for name, version in sorted(image.items())]
    debian = {tuple(package) for packages in (installed, *bundled.values()) for package in packages}
    page = [*page_components(), theme_component()]
    parts = [*map(file_component, sorted(files)), *page, *(library_component(*package) for package in sorted(debian))]
    links = [{"ref": "file:" + wheel, "dependsOn": [library_component(*package)["bom-ref"] for package in packages]
              + ([p["bom-ref"] for p in page] if wheel.startswith("dptrack-") else [])} for wheel, packages in sorted(bundled.items())]
    links += [{"ref": "file:" + os.path.basename(path), "dependsOn": [library_component(*package)["bom-ref"] for package in installed]}
              for path in files if path.endswith(".oci.tar")]
    top = {"type": "application", "bom-ref": "dptrack", "name": "dptrack", "version": project.version(),
           "licenses": [{"license": {"id": project.LICENCE}}]}
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(project.epoch()))
    content = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "metadata": {"timestamp": when, "component": top},
               "components": parts, "dependencies": links}
    name = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return {**content, "serialNumber": "urn:uuid:" + str(uuid.uuid5(NAMESPACE, name))}
