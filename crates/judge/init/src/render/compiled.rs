//! Dockerfiles of CUDA programs: built in a devel image, run in a smaller one.

use super::{Dockerfile, USER};
use crate::ProjectKind;
use crate::compiled::app::{Architectures, CompiledApp};

pub(crate) fn compiled(app: &CompiledApp<'_>) -> String {
    let mut file = Dockerfile::new(app.context);
    file.blank();
    file.explain(app.cuda);
    file.line(&format!("FROM {} AS build", app.build.value));
    let is_cmake = app.kind == ProjectKind::Cmake;
    if is_cmake {
        file.apt_install("cmake ninja-build");
    }
    file.line("WORKDIR /src");
    file.line("COPY . .");
    match app.architectures {
        Architectures::Own(reason) => file.comment(&format!("{reason}.")),
        Architectures::Cmake(number) | Architectures::Nvcc(number) => {
            file.comment(&format!(
                "{number}: machine code for {}, and PTX for later GPUs.",
                app.context.gpu_name()
            ));
        }
        Architectures::Make(argument) => {
            file.comment(&format!("{argument}: machine code for {}.", app.context.gpu_name()));
        }
    }
    if is_cmake {
        cmake(app, &mut file);
    } else {
        make(app, &mut file);
    }
    file.blank();
    file.comment(&format!("No compiler is needed to run: {}.", app.base.reason));
    file.line(&format!("FROM {}", app.base.value));
    if app.targets.openmp {
        file.apt_install("libgomp1");
    }
    copy(app, is_cmake, &mut file);
    if !app.targets.libraries.is_empty() {
        file.comment("/usr/local/lib is a directory of the loader; ldconfig adds the project's libraries to its cache.");
        file.line("RUN ldconfig");
    }
    file.user();
    file.command(USER, app.command);
    file.0
}

fn cmake(app: &CompiledApp<'_>, file: &mut Dockerfile) {
    let mut options = vec!["-DCMAKE_BUILD_TYPE=Release".to_owned()];
    if let Architectures::Cmake(number) = app.architectures {
        options.push(format!("-DCMAKE_CUDA_ARCHITECTURES={number}"));
    }
    // Libraries are found by the loader, not in the directories of the build stage.
    options.push("-DCMAKE_SKIP_RPATH=ON".to_owned());
    let mut steps = vec![];
    if app.targets.installs {
        steps.push(options.join(" "));
        steps.push("&& cmake --build /build".to_owned());
        steps.push("&& DESTDIR=/out cmake --install /build --prefix /usr/local".to_owned());
    } else {
        let libraries =
            if app.targets.libraries.is_empty() { "" } else { " -DCMAKE_LIBRARY_OUTPUT_DIRECTORY=/out/lib" };
        steps.push(options.join(" "));
        steps.push(format!("-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=/out/bin{libraries}"));
        steps.push("&& cmake --build /build".to_owned());
    }
    file.lines("RUN cmake -S . -B /build -G Ninja", &steps);
}

fn make(app: &CompiledApp<'_>, file: &mut Dockerfile) {
    match app.architectures {
        Architectures::Nvcc(number) => {
            let flags = format!("-gencode=arch=compute_{number},code=[sm_{number},compute_{number}]");
            file.line(&format!("RUN NVCC_APPEND_FLAGS=\"{flags}\" make --jobs=\"$(nproc)\""));
        }
        Architectures::Make(argument) => file.line(&format!("RUN make --jobs=\"$(nproc)\" {argument}")),
        Architectures::Own(_) | Architectures::Cmake(_) => file.line("RUN make --jobs=\"$(nproc)\""),
    }
}

/// Copies programs and libraries to where shell and loader look.
fn copy(app: &CompiledApp<'_>, is_cmake: bool, file: &mut Dockerfile) {
    let targets = app.targets;
    if is_cmake && targets.installs {
        file.line("COPY --from=build /out/usr/local/ /usr/local/");
    } else if is_cmake {
        file.line("COPY --from=build /out/bin/ /usr/local/bin/");
        if !targets.libraries.is_empty() {
            file.line("COPY --from=build /out/lib/ /usr/local/lib/");
        }
    } else {
        let paths =
            |paths: &[String]| paths.iter().map(|path| format!("/src/{path}")).collect::<Vec<_>>().join(" ");
        file.line(&format!("COPY --from=build {} /usr/local/bin/", paths(&targets.executables)));
        if !targets.libraries.is_empty() {
            file.line(&format!("COPY --from=build {} /usr/local/lib/", paths(&targets.libraries)));
        }
    }
}
