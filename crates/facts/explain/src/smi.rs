//! Parses the table that nvidia-smi prints.

use cudock_facts::Facts;
use cudock_facts::lookup::Runs;
use cudock_facts::version::{CudaVersion, DriverVersion};
use schemars::JsonSchema;
use serde::Serialize;

/// The start of every such table.
pub(crate) const SMI_HEADER: &[u8] = b"| NVIDIA-SMI ";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SmiTable {
    pub driver: DriverVersion,
    /// The newest CUDA version of the driver; `None` if libcuda does not load.
    pub cuda: Option<CudaVersion>,
    /// The names of the GPUs, which may be truncated with dots.
    pub gpus: Vec<String>,
}

impl SmiTable {
    /// Parses a text that starts with the header of a table.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines();
        let header = lines.next()?;
        let after = |label: &str| header.split_once(label)?.1.split_whitespace().next();
        // Since R590 it has separate versions for the kernel driver and the libraries.
        let driver = after("Driver Version: ").or_else(|| after("KMD Version: "))?.parse().ok()?;
        let cuda = after("CUDA Version: ").or_else(|| after("CUDA UMD Version: "));
        let gpus = lines.take_while(|line| line.starts_with(['|', '+'])).filter_map(gpu).map(str::to_owned);
        Some(Self { driver, cuda: cuda.and_then(|cuda| cuda.parse().ok()), gpus: gpus.collect() })
    }

    /// Conclusions from the table, and the next command to type.
    pub fn statements(&self, facts: &Facts) -> Vec<String> {
        let drivers = facts.drivers();
        let mut statements = Vec::new();
        let branch = drivers
            .branch_of(self.driver)
            .map_or_else(String::new, |branch| format!(" (R{})", branch.branch));
        let cuda = match self.cuda {
            Some(cuda) => {
                format!("; {cuda} is the newest CUDA it implements, not the toolkit that is installed")
            }
            None => "; libcuda was not found, so CUDA programs fail here".to_owned(),
        };
        statements.push(format!("driver {}{branch}{cuda}", self.driver));
        for (major, runs) in drivers.runs(self.driver) {
            let rest = match runs {
                Runs::All => continue,
                Runs::AllButPtxAfter(own) => {
                    format!("start; PTX newer than {own} is not supported (error 222)")
                }
                Runs::UpTo(own, needed) => format!("up to {own} start; later ones need driver {needed}"),
                Runs::None(needed) => format!("need driver {needed} (error 35)"),
            };
            statements.push(format!("programs built with CUDA {major} {rest}"));
        }
        let mut gpus: Vec<&str> = self.gpus.iter().map(String::as_str).collect();
        gpus.dedup();
        for name in &gpus {
            let rows = facts.gpus().find(name).rows();
            let mut capabilities: Vec<_> = rows.iter().filter_map(|row| row.capability).collect();
            capabilities.dedup();
            statements.push(match capabilities.as_slice() {
                [capability] => {
                    format!("{name}: compute capability {capability} (sm_{})", capability.number())
                }
                [] => format!("{name}: not in the tables"),
                _ => format!("{name}: the name is truncated; run `nvidia-smi -L` for the full name"),
            });
        }
        let gpu = gpus.first().map_or_else(|| "GPU".to_owned(), |name| format!("'{name}'"));
        statements.push(format!("next: cudock check IMAGE --gpu {gpu} --driver {}", self.driver));
        statements
    }
}

/// The name in the first line of a GPU: its number, the name and the persistence mode in the first column, its bus id in
/// the second.
fn gpu(line: &str) -> Option<&str> {
    let mut cells = line.strip_prefix('|')?.split('|');
    let cell = cells.next()?.trim();
    let address = cells.next()?.split_whitespace().next()?;
    if address.matches(':').count() != 2 {
        return None;
    }
    let name = cell.trim_start_matches(|c: char| c.is_ascii_digit());
    if name.len() == cell.len() || !name.starts_with("  ") {
        return None;
    }
    let name = name.trim();
    Some(["On", "Off", "N/A"].iter().find_map(|mode| name.strip_suffix(mode)).unwrap_or(name).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "\
| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  Tesla V100-SXM2...  On   | 00000000:00:1B.0 Off |                    0 |
| N/A   41C    P0    55W / 300W |      0MiB / 16160MiB |      0%      Default |
|   1  Tesla V100-SXM2...  On   | 00000000:00:1C.0 Off |                    0 |
+-------------------------------+----------------------+----------------------+
|    0   N/A  N/A      1234      C   python                           1000MiB |
";

    #[test]
    fn driver_cuda_and_names_are_read() {
        let table = SmiTable::parse(OLD.as_bytes()).unwrap();
        assert_eq!(table.driver.to_string(), "470.57.02");
        assert_eq!(table.cuda.unwrap().to_string(), "11.4");
        assert_eq!(table.gpus, ["Tesla V100-SXM2...", "Tesla V100-SXM2..."]);
    }

    #[test]
    fn statements_follow_from_the_table() {
        let statements = SmiTable::parse(OLD.as_bytes()).unwrap().statements(&Facts::embedded()).join("\n");
        for part in ["CUDA 12 need driver 525.60.13", "compute capability 7.0 (sm_70)", "--driver 470.57.02"]
        {
            assert!(statements.contains(part), "{statements}");
        }
    }

    #[test]
    fn a_header_alone_or_garbage_is_accepted() {
        assert_eq!(SmiTable::parse(b"| NVIDIA-SMI 535.1"), None);
        assert_eq!(SmiTable::parse(b"| NVIDIA-SMI \xff Driver Version: \xfe"), None);
        let cut =
            SmiTable::parse(b"| NVIDIA-SMI 535.1 Driver Version: 535.161.08 CUDA Version: ERR!").unwrap();
        assert_eq!((cut.cuda, cut.gpus.len()), (None, 0));
    }
}
