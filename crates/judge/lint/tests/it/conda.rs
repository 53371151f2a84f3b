//! Near misses of the rules for conda.

use crate::codes_between;

#[test]
fn near_misses() {
    const CLEAN: &str = "&& conda clean --all --yes";
    let cases: &[(&str, &[&str])] = &[
        // installers
        (
            "RUN wget -q https://github.com/conda-forge/miniforge/releases/latest/download/Miniforge3-Linux-x86_64.sh",
            &["CD0748"],
        ),
        ("RUN wget -q https://repo.anaconda.com/miniconda/Miniconda3-py312_25.3.1-1-Linux-x86_64.sh", &[]),
        ("RUN echo https://repo.anaconda.com/miniconda/Miniconda3-latest-Linux-x86_64.sh", &[]),
        // channels
        ("RUN conda install -y -c conda-forge -c bioconda samtools=1.21 CLEAN", &[]),
        ("RUN conda install -y --channel=anaconda --channel=conda-forge numpy=2.2 CLEAN", &["CD0749"]),
        ("RUN conda install -y -c pytorch pytorch CLEAN", &["CD0750"]),
        ("RUN conda install -y -c pytorch pytorch=2.6 CLEAN", &["CD0750"]),
        ("RUN conda install -y -c pytorch -c conda-forge pytorch=2.6 faiss-gpu=1.9.0 CLEAN", &[]),
        ("RUN conda install -y -c pytorch faiss-gpu=1.9.0 CLEAN", &[]),
        // CUDA
        ("RUN conda install -y -c conda-forge cudatoolkit=12.1 CLEAN", &["CD0751"]),
        ("RUN conda install -y -c conda-forge cudatoolkit=11.8 cuda-version=11.8 CLEAN", &[]),
        ("RUN conda install -y -c conda-forge cudatoolkit=11.3 cuda-version=11.8 CLEAN", &["CD0751"]),
        ("RUN conda install -y -c pytorch -c nvidia pytorch=2.3.1 pytorch-cuda=12.4 CLEAN", &["CD0751"]),
        ("RUN conda install -y -c conda-forge pytorch=2.7.1 cuda-version=12.6 CLEAN", &["CD0752"]),
        ("ENV CONDA_OVERRIDE_CUDA=12.8\nRUN conda install -y -c conda-forge pytorch=2.7.1 CLEAN", &[]),
        ("RUN conda install -y -c conda-forge pytorch-cpu=2.7.1 CLEAN", &[]),
        ("RUN conda install -y -c conda-forge numpy=2.2 CLEAN", &[]),
        // start
        ("CMD conda run -n app python serve.py", &["CD0753"]),
        ("CMD conda run --live-stream -n app python serve.py", &[]),
        ("CMD [\"micromamba\", \"run\", \"-n\", \"app\", \"python\"]", &[]),
        ("SHELL [\"conda\", \"run\", \"-n\", \"app\", \"/bin/bash\", \"-c\"]", &["CD0753"]),
        ("RUN conda run -n app python setup.py", &[]),
        // activation
        ("RUN . /opt/conda/bin/activate app", &["CD0754"]),
        ("RUN echo 'conda activate app' >> ~/.bashrc", &[]),
        ("RUN . /opt/conda/etc/profile.d/conda.sh && conda activate app && python x.py", &[]),
        // layers
        ("RUN mamba install -y -c conda-forge numpy=2.2 && rm -rf /opt/conda/pkgs", &[]),
        ("RUN --mount=type=cache,target=/opt/conda/pkgs mamba install -y -c conda-forge numpy=2.2", &[]),
        ("RUN micromamba create -y -n app -f environment.yml", &["CD0755"]),
        ("RUN conda info && conda list", &[]),
        // base
        ("RUN conda env update --name app --file environment.yml CLEAN", &[]),
        ("RUN conda env update --name=base --file environment.yml CLEAN", &["CD0756"]),
        // Python alone
        ("RUN conda create -y -n app python=3.12 CLEAN", &[]),
        ("RUN conda env create -f environment.yml CLEAN\nRUN pip install --no-cache-dir numpy", &[]),
        (
            "RUN conda create -y -n app python=3.12 pip CLEAN\nRUN pip3 install --no-cache-dir numpy",
            &["CD0757"],
        ),
    ];
    for (steps, expected) in cases {
        let text = format!("FROM condaforge/miniforge3:25.3.1-0\n{}\n", steps.replace("CLEAN", CLEAN));
        assert_eq!(codes_between(&text, "CD0748", "CD0757"), *expected, "{steps}");
    }
}
