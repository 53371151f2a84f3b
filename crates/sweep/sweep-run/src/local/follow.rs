//! Follows files that a trial writes its metrics to.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};

use cudock_base::files::read_some;

use super::lines::LineSplitter;
use crate::metrics::LineMetric;

/// Bytes that are read of a file at a time, so that a trial which writes without end cannot hold up its worker.
const MAX_READ: usize = 4 << 20;

/// Maximum number of MLflow files that are followed for one trial.
const MAX_MLFLOW_FILES: usize = 64;

/// The lines that are appended to a file, which need not exist yet.
#[derive(Debug)]
pub(crate) struct FileFollower {
    path: PathBuf,
    offset: u64,
    lines: LineSplitter,
}

impl FileFollower {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, lines: LineSplitter::default() }
    }

    /// Reads new lines. Returns whether the end of the file was reached.
    pub(crate) fn read(&mut self, on_line: &mut dyn FnMut(&str)) -> bool {
        // A file that is missing or cannot be read now may come later.
        let Ok(mut file) = File::open(&self.path) else { return true };
        let Ok(metadata) = file.metadata() else { return true };
        if !metadata.is_file() || metadata.len() == self.offset {
            return true;
        }
        if metadata.len() < self.offset {
            // The program has written the file anew.
            self.offset = 0;
        }
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return true;
        }
        let (mut buffer, mut total) = (vec![0; 64 << 10], 0);
        while total < MAX_READ {
            let Ok(bytes @ [_, ..]) = read_some(&mut file, &mut buffer) else { return true };
            self.lines.feed(bytes, on_line);
            total += bytes.len();
            self.offset += bytes.len() as u64;
        }
        false
    }

    /// Reads the last line, if it did not end.
    pub(crate) fn finish(&mut self, on_line: &mut dyn FnMut(&str)) {
        self.lines.finish(on_line);
    }
}

/// The metrics in MLflow's file store: a file `EXPERIMENT/RUN/metrics/NAME` with lines of timestamp, value and step.
#[derive(Debug)]
pub(crate) struct MlflowFollower {
    directory: PathBuf,
    objectives: Vec<String>,
    files: BTreeMap<PathBuf, (usize, FileFollower)>,
}

impl MlflowFollower {
    pub(crate) fn new(directory: PathBuf, objectives: &[String]) -> Self {
        Self { directory, objectives: objectives.to_vec(), files: BTreeMap::new() }
    }

    /// Reads new metrics. Returns whether the ends of all files were reached.
    pub(crate) fn read(&mut self, on_metric: &mut dyn FnMut(LineMetric)) -> bool {
        let runs = directories(&self.directory).into_iter().flat_map(|experiment| directories(&experiment));
        for run in runs.take(MAX_MLFLOW_FILES) {
            for (index, name) in self.objectives.iter().enumerate() {
                let path = run.join("metrics").join(name);
                if self.files.len() < MAX_MLFLOW_FILES && !self.files.contains_key(&path) && path.is_file() {
                    self.files.insert(path.clone(), (index, FileFollower::new(path)));
                }
            }
        }
        let mut is_complete = true;
        for (objective, file) in self.files.values_mut() {
            is_complete &= file.read(&mut |line| {
                if let Some(metric) = mlflow_line(*objective, line) {
                    on_metric(metric);
                }
            });
        }
        is_complete
    }
}

fn mlflow_line(objective: usize, line: &str) -> Option<LineMetric> {
    let mut fields = line.split_ascii_whitespace().skip(1);
    let value = fields.next()?.parse().ok()?;
    Some(LineMetric { objective, step: fields.next().and_then(|step| step.parse().ok()), value })
}

/// The directories in a directory, by name.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).take(MAX_MLFLOW_FILES).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_is_followed_from_before_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("metrics");
        let mut follower = FileFollower::new(path.clone());
        let mut lines = Vec::new();
        assert!(follower.read(&mut |line| lines.push(line.to_owned())));
        let mut file = File::create(&path).unwrap();
        for text in ["a=1\nb", "=2\n", "last"] {
            file.write_all(text.as_bytes()).unwrap();
            assert!(follower.read(&mut |line| lines.push(line.to_owned())));
        }
        follower.finish(&mut |line| lines.push(line.to_owned()));
        assert_eq!(lines, ["a=1", "b=2", "last"]);
        fs::write(&path, "new\n").unwrap();
        follower.read(&mut |line| lines.push(line.to_owned()));
        assert_eq!(lines.last().unwrap(), "new");
    }

    #[test]
    fn metrics_of_mlflow_are_read_from_every_run() {
        let directory = tempfile::tempdir().unwrap();
        let mut follower =
            MlflowFollower::new(directory.path().to_owned(), &["acc".into(), "val/loss".into()]);
        let mut metrics = Vec::new();
        let mut write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            assert!(follower.read(&mut |metric| metrics.push((metric.objective, metric.step, metric.value))));
        };
        write("0/r1/metrics/acc", "1700000000000 0.5 0\n");
        write("0/r1/metrics/acc", "1700000000000 0.5 0\n1700000000001 0.75 1\nbroken\n");
        write("0/r2/metrics/val/loss", "1700000000001 2.5 3\n");
        write("0/r2/metrics/other", "1700000000001 9 3\n");
        assert_eq!(metrics, [(0, Some(0), 0.5), (0, Some(1), 0.75), (1, Some(3), 2.5)]);
    }
}
