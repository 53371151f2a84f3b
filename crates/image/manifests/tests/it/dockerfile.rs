//! Dockerfiles, as people write them.

use cudock_base::Arch;
use cudock_manifests::{Declared, FileKind, Files, Manager, Targets, read_with_files};

use crate::{read, read_for};

fn docker(text: &str) -> Declared {
    read(FileKind::Dockerfile, "Dockerfile", text).unwrap()
}

fn packages(declared: &Declared) -> Vec<String> {
    let one = |package: &cudock_manifests::DeclaredPackage| {
        let exact = package.exact.as_ref().map(|version| format!(" =={version}")).unwrap_or_default();
        let range = package.range.as_ref().map(|range| format!(" {range}")).unwrap_or_default();
        let tag = package.tag.as_ref().map(|tag| format!(" {tag}")).unwrap_or_default();
        let conda = if package.manager == Manager::Conda { " conda" } else { "" };
        format!("{} {}{exact}{range}{tag}{conda}", package.span.line, package.name)
    };
    declared.packages.iter().map(one).collect()
}

fn notes(declared: &Declared) -> Vec<String> {
    declared.notes.iter().map(|note| format!("{} {}", note.span.line, note.text)).collect()
}

fn cuda(declared: &Declared) -> Vec<String> {
    let version = |found: &cudock_manifests::CudaPackage| {
        found.cuda.map_or_else(|| "?".to_owned(), |cuda| cuda.to_string())
    };
    declared
        .cuda_packages
        .iter()
        .map(|found| format!("{} {} {}", found.span.line, found.name, version(found)))
        .collect()
}

#[test]
fn an_image_of_several_stages_is_what_its_last_one_is() {
    let declared = docker(
        r#"# syntax=docker/dockerfile:1
ARG CUDA=12.4.1
ARG FLAVOR=devel
FROM nvidia/cuda:${CUDA}-${FLAVOR:-base}-ubuntu22.04 AS base
ENV DEBIAN_FRONTEND=noninteractive \
    PATH=/opt/venv/bin:$PATH
RUN apt-get update && apt-get install -y --no-install-recommends \
        python3.11 \
        # the compiler
        cuda-nvcc-12-4 libcudnn9-dev-cuda-12=9.1.0.70-1 \
        cuda-compat-12-4 curl \
    && rm -rf /var/lib/apt/lists/*

FROM golang:1.22 AS tools
RUN pip install not-this-one

FROM base AS final
ARG CUDA
ENV CUDA_FROM_ARG=$CUDA NVIDIA_DISABLE_REQUIRE="1" GREETING='$CUDA'
COPY --from=tools /go/bin/tool /usr/bin/
RUN --mount=type=cache,target=/root/.cache \
    pip install --no-cache-dir torch==2.4.0 "numpy<2" \
      --index-url https://download.pytorch.org/whl/cu124
ENTRYPOINT ["python3"]
CMD ["-m", "train"]
"#,
    );
    assert_eq!(declared.base_image.as_ref().unwrap().reference, "nvidia/cuda:12.4.1-devel-ubuntu22.04");
    assert_eq!(declared.base_image.as_ref().unwrap().span.line, 4);
    assert_eq!(packages(&declared), ["22 torch ==2.4.0 cu124", "22 numpy <2"]);
    assert_eq!(
        cuda(&declared),
        ["10 cuda-nvcc-12-4 12.4", "10 libcudnn9-dev-cuda-12 ?", "11 cuda-compat-12-4 12.4"]
    );
    assert_eq!(declared.python.as_deref(), Some("3.11"));
    assert_eq!(declared.environment["CUDA_FROM_ARG"], "12.4.1");
    assert_eq!(declared.environment["GREETING"], "$CUDA");
    assert!(!declared.environment.contains_key("PATH"));
    assert_eq!(declared.command.as_deref().unwrap(), ["python3", "-m", "train"]);
    assert_eq!(
        notes(&declared),
        ["5 PATH depends on PATH, which is not set", "20 content copied from `tools` is unknown",]
    );
}

#[test]
fn installers_are_found_however_they_are_called() {
    let cases = [
        ("pip install torch==2.3.0", "2 torch ==2.3.0"),
        ("pip3.11 --no-cache-dir install -q torch==2.3.0", "2 torch ==2.3.0"),
        ("/opt/venv/bin/pip install torch==2.3.0", "2 torch ==2.3.0"),
        ("python3 -m pip install --upgrade torch==2.3.0", "2 torch ==2.3.0"),
        ("sudo -H pip install torch==2.3.0", "2 torch ==2.3.0"),
        ("cd /tmp; (pip install torch==2.3.0)", "2 torch ==2.3.0"),
        ("if true; then pip install torch==2.3.0; fi", "2 torch ==2.3.0"),
        ("bash -lc 'set -e && pip install torch==2.3.0'", "2 torch ==2.3.0"),
        ("uv pip install --system torch==2.3.0 --torch-backend=cu121", "2 torch ==2.3.0 cu121"),
        ("uv add torch==2.3.0", "2 torch ==2.3.0"),
        ("PIP_EXTRA_INDEX_URL=https://x.org/whl/cu118 pip install torch", "2 torch cu118"),
        ("PIP_EXTRA_INDEX_URL=https://x.org/whl/cu118 python -m pip install torch", "2 torch cu118"),
        ("export V=2.3.0 && pip install torch==$V", "2 torch ==2.3.0"),
        ("V=2.3.0; pip install \"torch==${V}\"", "2 torch ==2.3.0"),
        ("pip install torch==${V:-2.2.0}", "2 torch ==2.2.0"),
        ("conda run -n env pip install torch==2.3.0", "2 torch ==2.3.0"),
        ("[\"pip\", \"install\", \"torch==2.3.0\"]", "2 torch ==2.3.0"),
        ("conda install -y -c pytorch -n base pytorch==2.1.0 && conda clean -a", "2 pytorch ==2.1.0 conda"),
        ("mamba create -p /env 'pytorch>=2.1'", "2 pytorch >=2.1 conda"),
        ("micromamba install pytorch=2.3.0=py3.11_cuda12.1_0", "2 pytorch ==2.3.0 cu121 conda"),
        ("pip install torch==2.3.0+cpu # slim", "2 torch ==2.3.0+cpu cpu"),
        ("pip install torch==2.3.0 > /dev/null 2>&1", "2 torch ==2.3.0"),
    ];
    for (run, expected) in cases {
        let declared = docker(&format!("FROM python:3.11\nRUN {run}\n"));
        assert_eq!(packages(&declared), [expected], "{run}: {declared:?}");
        assert_eq!(notes(&declared), [""; 0], "{run}");
    }
}

#[test]
fn what_the_text_does_not_determine_is_noted() {
    let cases = [
        ("RUN pip install -r requirements.txt", "cannot read `requirements.txt`"),
        ("RUN pip install -e .", "`.` is installed from source"),
        ("RUN pip install .", "dependencies of . are unknown"),
        ("RUN pip install torch==$VERSION", "`torch==$VERSION` cannot be resolved"),
        ("RUN pip install $(cat list)", "`$(cat list)` cannot be resolved"),
        ("RUN pip install torch --index-url $INDEX", "index `$INDEX` cannot be resolved"),
        ("RUN pip install torch>=2.0", "`torch>=` is not quoted: the shell reads it as a redirection"),
        ("RUN pip install torch=2", "`torch=2`: `=2` is not a version or range of versions"),
        ("RUN pip uninstall -y torch", "removes torch"),
        ("RUN conda env create -f environment.yml", "cannot read `environment.yml`"),
        ("RUN conda install $PACKAGES", "`$PACKAGES` cannot be resolved"),
        (
            "RUN uv sync --frozen",
            "cannot determine what uv installs: pyproject.toml not found or not readable",
        ),
        (
            "RUN poetry install",
            "cannot determine what poetry installs: pyproject.toml not found or not readable",
        ),
        ("RUN apt-get install cuda-toolkit-$V", "`cuda-toolkit-$V` cannot be resolved"),
        ("ARG VERSION", "build argument VERSION has no default"),
        ("ENV A=$B", "A depends on B, which is not set"),
        ("ONBUILD RUN pip install torch", "ONBUILD applies to images built on this one"),
        (
            "SHELL [\"powershell\", \"-command\"]\nRUN pip install x",
            "commands for a Windows shell are not analyzed",
        ),
    ];
    for (instruction, note) in cases {
        let declared = docker(&format!("FROM a\n{instruction}\n"));
        let found: Vec<&str> = declared.notes.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(found, [note], "{instruction}");
    }
}

#[test]
fn a_base_image_that_depends_on_a_build_argument_is_noted() {
    let declared = docker("ARG BASE\nFROM $BASE\n");
    assert_eq!(declared.base_image, None);
    assert_eq!(
        notes(&declared),
        ["1 build argument BASE has no default", "2 base image `$BASE` depends on BASE, which is not set",]
    );
}

#[test]
fn here_documents_are_scripts_and_not_instructions() {
    let declared = docker(
        "FROM a
RUN <<EOF
set -e
pip install torch==2.3.0
apt-get install -y cuda-toolkit-12-4
EOF
COPY <<-\"END\" /app/run.py
\tFROM nowhere
\tEND
RUN python3 <<PY
pip install not-this
PY
RUN bash <<ONE
pip install numpy
ONE
CMD python run.py
",
    );
    assert_eq!(packages(&declared), ["4 torch ==2.3.0", "14 numpy"]);
    assert_eq!(cuda(&declared), ["5 cuda-toolkit-12-4 12.4"]);
    assert_eq!(declared.command.unwrap(), ["/bin/sh", "-c", "python run.py"]);
}

#[test]
fn the_escape_can_be_chosen() {
    let declared = docker("# escape=`\nFROM a\nRUN pip install `\n  torch==2.3.0\nENV A=c:\\x\n");
    assert_eq!(packages(&declared), ["4 torch ==2.3.0"]);
    assert_eq!(declared.environment["A"], "c:\\x");
}

#[test]
fn the_platform_decides_markers_and_arguments() {
    let text = "FROM --platform=linux/arm64 a:${TARGETARCH}\nRUN pip install \"x ; platform_machine == 'x86_64'\" y\n";
    let declared = docker(text);
    assert_eq!(declared.platform.as_deref(), Some("linux/arm64"));
    assert_eq!(packages(&declared), ["2 y"]);
    let by_caller = read_for(FileKind::Dockerfile, "D", "FROM a:$TARGETARCH\n", Arch::Aarch64).unwrap();
    assert_eq!(by_caller.base_image.unwrap().reference, "a:arm64");
}

#[test]
fn an_entry_point_takes_arguments_as_docker_gives_them() {
    let cases: [(&str, Option<&[&str]>); 7] = [
        ("FROM a\n", None),
        ("FROM a\nCMD [\"b\", \"c\"]\n", Some(&["b", "c"])),
        ("FROM a\nCMD b c\n", Some(&["/bin/sh", "-c", "b c"])),
        ("FROM a\nENTRYPOINT [\"b\"]\nCMD c\n", Some(&["b", "/bin/sh", "-c", "c"])),
        ("FROM a\nENTRYPOINT b\nCMD [\"c\"]\n", Some(&["/bin/sh", "-c", "b"])),
        ("FROM a AS x\nCMD [\"c\"]\nFROM x\nENTRYPOINT [\"b\"]\n", Some(&["b"])),
        ("FROM a\nSHELL [\"/bin/bash\", \"-c\"]\nCMD b\n", Some(&["/bin/bash", "-c", "b"])),
    ];
    for (text, expected) in cases {
        let command = docker(text).command;
        let expected =
            expected.map(|arguments| arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(command, expected, "{text}");
    }
}

#[test]
fn a_stage_is_found_by_name_only_if_it_is_above() {
    let declared = docker("FROM x AS cuda\nENV A=1\nFROM cuda AS Cuda\nENV B=1\nFROM CUDA\nENV C=1\n");
    assert_eq!(declared.base_image.unwrap().reference, "x");
    assert_eq!(declared.environment.len(), 3);
    assert_eq!(docker("FROM b AS a\nFROM a AS b\n").base_image.unwrap().reference, "b");
}

#[test]
fn errors_are_shown_with_their_position() {
    let cases = [
        ("", 1, "no FROM"),
        ("# only a comment\n", 1, "no FROM"),
        ("RUN a\nFROM b\n", 1, "RUN before FROM"),
        ("FROM a\nRUM b\n", 2, "unknown instruction `RUM`"),
        ("FROM a\nRUN\n", 2, "RUN without arguments"),
        ("FROM a\nENV b\n", 2, "ENV without a value"),
        ("FROM a\nENV b=1 c\n", 2, "`c` has no value"),
        ("FROM a\nRUN <<EOF\nb\n", 2, "here-document is not closed by a line `EOF`"),
        ("# escape=x\nFROM a\n", 1, "invalid escape character `x`"),
        ("FROM a\nSHELL b\n", 2, "SHELL expects a JSON list"),
    ];
    for (text, line, message) in cases {
        let error = read(FileKind::Dockerfile, "Dockerfile", text).unwrap_err();
        assert_eq!((error.line, error.message.as_str()), (line, message), "{text:?}");
    }
}

#[test]
fn variables_cannot_make_more_of_a_file_than_it_holds() {
    let mut text = "FROM a\nENV A0=xxxxxxxxxxxxxxxx\n".to_owned();
    for level in 1..60 {
        let below = level - 1;
        text += &format!("ENV A{level}=$A{below}$A{below}\n");
    }
    let error = read(FileKind::Dockerfile, "Dockerfile", &text).unwrap_err();
    assert_eq!(error.message, "variables expand to far more text than the file holds");
}

fn decides(text: &str) -> Vec<String> {
    docker(text).notes.into_iter().filter(|note| note.decides).map(|note| note.text).collect()
}

#[test]
fn a_dockerfile_that_compiles_its_program_is_never_judged_cpu() {
    let steps = [
        "RUN cmake . && make",
        "RUN make -j4",
        "RUN ninja",
        "RUN bazel build //:app",
        "RUN cargo build --release",
        "RUN go build ./...",
        "RUN gcc -o app app.c",
        "RUN meson setup build",
        "RUN python3 setup.py install",
        "RUN pip install .",
        "RUN pip install -e ./tools",
        "RUN pip install git+https://example.com/x.git",
        "RUN npm install",
        "COPY . /app",
        "COPY app /usr/bin/",
        "ADD x.tar.gz /opt/",
        "ADD https://example.com/app /app",
        "COPY --from=other/image:1 /bin/x /bin/x",
        "RUN git clone https://example.com/x.git",
        "RUN curl -fsSL https://example.com/x | bash",
        "RUN wget https://example.com/x",
        "RUN tar xf x.tar",
        "RUN unzip x.zip",
        "RUN ./install",
        "RUN bash install.sh",
        "RUN source ./install.sh",
        "RUN some-tool --flag",
        "RUN python -m tool.install",
        "RUN apt-get install -y ./x.deb",
        "CMD [\"./server\"]",
        "ENTRYPOINT [\"/opt/app/run\"]",
    ];
    for step in steps {
        assert!(!decides(&format!("FROM ubuntu:22.04\n{step}\n")).is_empty(), "{step}");
    }
    let compiled =
        docker("FROM nvidia/cuda:11.8.0-devel-ubuntu20.04\nRUN nvcc -o /a/app /a/app.cu\n").compiled;
    assert_eq!((compiled.len(), compiled[0].output.as_deref()), (1, Some("a/app")));
}

#[test]
fn everyday_commands_leave_nothing_open() {
    let steps = [
        "RUN apt-get update && apt-get install -y --no-install-recommends python3 curl && rm -rf /var/lib/apt/lists/*",
        "RUN useradd -m app && mkdir -p /data && chown app /data && ln -s /usr/bin/python3 /usr/bin/python",
        "RUN set -eux; if [ -f /x ]; then echo yes; else echo no; fi; for i in 1 2; do echo $i; done",
        "RUN python -m venv /opt/venv && . /opt/venv/bin/activate",
        "RUN curl -LsSf https://astral.sh/uv/install.sh | sh",
        "RUN wget -q https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-x86_64.sh && bash Miniconda3-latest-Linux-x86_64.sh -b",
        "RUN ldconfig && locale-gen en_US.UTF-8",
        "COPY --from=ghcr.io/astral-sh/uv:latest /uv /bin/uv",
        "ENV PATH=/opt/venv/bin:$PATH",
        "ARG VERSION",
        "CMD [\"python\", \"app.py\"]",
        "CMD uvicorn app:app",
    ];
    for step in steps {
        assert_eq!(decides(&format!("FROM python:3.11\n{step}\n")), [""; 0], "{step}");
    }
}

#[test]
fn stages_that_copy_from_each_other_cannot_make_more_work_than_there_is_text() {
    let mut text = "FROM a AS s0\nRUN pip install torch==2.3.1\n".to_owned();
    for level in 1..200 {
        let below = level - 1;
        let copy = format!("COPY --from=s{below} /usr/local /usr/local\n");
        text += &format!("FROM a AS s{level}\n{copy}{copy}");
    }
    let declared = docker(&text);
    assert!(declared.packages.len() <= 1 && !declared.notes.is_empty());
}

#[test]
fn everything_found_has_the_bytes_it_was_found_at() {
    let text = "\u{feff}FROM nvidia/cuda:12.4.1-base-ubuntu22.04\nRUN apt-get install -y \\\n    # pinned\n    \
                cuda-toolkit-12-4 && \\\n    pip install 'torch==2.3.1' \"numpy<2\" && \\\n    ./größe.sh x\n\
                RUN <<-EOF\n\tpip install jax\n\tcurl -O https://example.org/tool\nEOF\n";
    let file = cudock_dockerfile::parse(text).unwrap();
    let keywords = file.instructions.iter().map(|instruction| &text[instruction.span.bytes()][..4]);
    assert!(keywords.eq(["FROM", "RUN ", "RUN "]));
    let declared = docker(text);
    let at = |span: cudock_base::Span| &text[span.bytes()];
    assert_eq!(at(declared.base_image.as_ref().unwrap().span), "FROM nvidia/cuda:12.4.1-base-ubuntu22.04");
    assert_eq!(at(declared.cuda_packages[0].span), "cuda-toolkit-12-4");
    let packages: Vec<&str> = declared.packages.iter().map(|package| at(package.span)).collect();
    assert_eq!(packages, ["'torch==2.3.1'", "\"numpy<2\"", "jax"]);
    let jax = declared.packages[2].span;
    assert_eq!((jax.line, jax.column), (8, 14));
    let notes: Vec<&str> = declared.notes.iter().map(|note| at(note.span)).collect();
    assert_eq!(notes, ["./größe.sh x", "curl -O https://example.org/tool"]);
}

#[test]
fn a_here_document_in_a_script_is_read_only_where_a_shell_reads_it() {
    let text = "FROM a\nRUN <<EOF\ncat <<X > /etc/motd\npip install tensorflow\nX\nbash <<Y\npip install torch\nY\nEOF\n";
    assert_eq!(packages(&docker(text)), ["6 torch"]);
}

/// Files of a build context, by path.
struct Context<'a>(&'a [(&'a str, &'a str)]);

impl Files for Context<'_> {
    fn text(&self, path: &str) -> Option<String> {
        self.0.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned())
    }

    fn below(&self, path: &str) -> Vec<String> {
        let names = self.0.iter().map(|(name, _)| (*name).to_owned());
        names.filter(|name| path.is_empty() || name == path).collect()
    }
}

fn read_in(files: &[(&str, &str)], text: &str) -> Declared {
    read_with_files(FileKind::Dockerfile, "Dockerfile", text, Arch::X86_64, "", &Context(files)).unwrap()
}

#[test]
fn what_a_command_may_have_changed_is_not_known_any_more() {
    const LISTS: &str = "project(a LANGUAGES CXX CUDA)\nset(CMAKE_CUDA_ARCHITECTURES 70-real)\n";
    const MAKE: &str = "a: a.cu\n\tnvcc -gencode arch=compute_70,code=sm_70 -o a a.cu\n";
    let files = [
        ("CMakeLists.txt", LISTS),
        ("Makefile", MAKE),
        ("a.cu", ""),
        ("build.sh", "#!/bin/sh\nnvcc -gencode arch=compute_70,code=sm_70 -o a a.cu\n"),
        ("fix.sh", "#!/bin/sh\nsed -i s/70/90/ CMakeLists.txt Makefile build.sh\n"),
    ];
    let builds = [
        ("CMakeLists.txt", "cmake -B out && cmake --build out"),
        ("Makefile", "make"),
        ("build.sh", "sh build.sh"),
    ];
    // Whether a command before the build leaves the file as it is.
    let commands: [(&str, bool); 26] = [
        ("true", true),
        ("apt-get update", true),
        ("sed s/70/90/ FILE", true),
        ("cat FILE > /tmp/copy", true),
        ("cp FILE /tmp/", true),
        ("sed -i s/70/90/ other.txt", true),
        ("sed -i s/70/90/ FILE", false),
        ("sed -i.bak s/70/90/ ./FILE", false),
        ("sed --in-place=.bak -e s/70/90/ /src/FILE", false),
        ("sed -i s/70/90/ *", false),
        ("cd / && sed -i s/70/90/ src/FILE", false),
        ("perl -pi -e s/70/90/ FILE", false),
        ("gawk -i inplace 1 FILE", false),
        ("echo x > FILE", false),
        ("echo x >> FILE", false),
        ("echo x | tee -a FILE", false),
        ("cp /opt/new FILE", false),
        ("cp /opt/FILE .", false),
        ("mv /opt/FILE /src/", false),
        ("patch -p1 < x.patch", false),
        ("git apply x.patch", false),
        ("git checkout v2", false),
        ("sh fix.sh", false),
        ("./fix.sh", false),
        ("python3 set_architectures.py", false),
        ("./configure --cuda", false),
    ];
    for (file, build) in builds {
        for (command, stays) in commands {
            // Only build files are read after a command that could change anything.
            let is_unknown = command.starts_with("python3") || command.starts_with("./configure");
            let stays = stays || is_unknown && file == "build.sh";
            let command = command.replace("FILE", file);
            for separator in ["\nRUN ", " && "] {
                let text = format!(
                    "FROM nvidia/cuda:12.6.3-devel-ubuntu22.04\nWORKDIR /src\nCOPY . .\nRUN {command}{separator}cd /src && {build}\n"
                );
                let declared = read_in(&files, &text);
                let listed =
                    declared.compiled.iter().any(|one| matches!(one.targets, Targets::Listed { .. }));
                assert_eq!(listed, stays, "{command}{separator}{build}: {:?}", declared.compiled);
                assert!(listed || !declared.notes.is_empty() || !declared.compiled.is_empty(), "{command}");
            }
        }
    }
}
