//! Processors, memory and GPUs.

use crate::fault::Problem;
use crate::note::NoteKind;
use crate::resources::{Amounts, GPUS_ENDED, GpuSku, Limits, RequestedGpu, Resources};
use cudock_base::text::escape;
use cudock_yaml::{Data, Node};

use super::fields::{Fields, GroupReader, Keys};

pub(super) static RESOURCES: Keys = Keys {
    elsewhere: &[(AMOUNT_KEYS, "move it below `requests:`")],
    ..Keys::new("`resources`", &["requests", "limits"])
};
const AMOUNT_KEYS: &[&str] = &["cpu", "memoryInGB", "memoryInGb", "gpu"];
const OTHER_WORDS: (&[&str], &str) =
    (&["memory", "memoryInGiB", "memoryGB"], "write `memoryInGB:` and a number");
pub(super) static REQUESTS: Keys = Keys { elsewhere: &[OTHER_WORDS], ..Keys::new("`requests`", AMOUNT_KEYS) };
pub(super) static LIMITS: Keys = Keys { elsewhere: &[OTHER_WORDS], ..Keys::new("`limits`", AMOUNT_KEYS) };
pub(super) static GPU: Keys = Keys::new("`gpu`", &["count", "sku"]);

/// More cores than a machine has.
const MOST_CORES: f64 = 65_536.0;

/// More memory than a machine has, in GB.
const MOST_GIGABYTES: f64 = 1_048_576.0;

impl GroupReader {
    pub(super) fn resources(&mut self, container: &Fields<'_>) -> Option<Resources> {
        let path = container.path_of("resources");
        let Some(node) = container.get("resources") else {
            let message = "Azure requires `requests` with `cpu` and `memoryInGB`; here there is no limit";
            self.note(container.span, &path, NoteKind::Differs, message);
            return None;
        };
        let fields = self.fields(node, &path, &RESOURCES)?;
        let requests = match self.required(&fields, "requests") {
            Some(node) => self.requests(node, &fields.path_of("requests")),
            None => None,
        };
        let limits = match fields.get("limits") {
            Some(node) => Some((self.limits(node, &fields.path_of("limits"))?, node)),
            None => None,
        };
        let requests = requests?;
        if let Some((limits, node)) = &limits {
            self.check_limits(&requests, limits, node);
        }
        Some(Resources { requests, limits: limits.map(|(limits, _)| limits) })
    }

    fn requests(&mut self, node: &Node, path: &str) -> Option<Amounts> {
        let fields = self.fields(node, path, &REQUESTS)?;
        self.required(&fields, "cpu");
        if fields.get("memoryInGb").is_none() {
            self.required(&fields, "memoryInGB");
        }
        let (cpu, memory) = (self.cpu(&fields), self.memory(&fields));
        let gpu = self.gpu(&fields, true);
        Some(Amounts { cpu_millis: cpu?, memory_bytes: memory?, gpu })
    }

    fn limits(&mut self, node: &Node, path: &str) -> Option<Limits> {
        let fields = self.fields(node, path, &LIMITS)?;
        let (cpu_millis, memory_bytes) = (self.cpu(&fields), self.memory(&fields));
        Some(Limits { cpu_millis, memory_bytes, gpu: self.gpu(&fields, false) })
    }

    fn check_limits(&mut self, requests: &Amounts, limits: &Limits, node: &Node) {
        if limits.cpu_millis.is_some_and(|cpu| cpu < requests.cpu_millis) {
            self.fault(node.span, Problem::LimitBelowRequest { what: "cpu" });
        }
        if limits.memory_bytes.is_some_and(|memory| memory < requests.memory_bytes) {
            self.fault(node.span, Problem::LimitBelowRequest { what: "memoryInGB" });
        }
    }

    fn cpu(&mut self, fields: &Fields<'_>) -> Option<u32> {
        let cores = self.amount(fields, "cpu")?;
        if cores > MOST_CORES {
            self.unbelievable(fields, "cpu");
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above zero and checked above"
        )]
        let millis = (cores * 1000.0).round() as u32;
        Some(millis.max(1))
    }

    fn memory(&mut self, fields: &Fields<'_>) -> Option<u64> {
        // Azure's documents write it both ways, and its service reads both.
        let key = match (fields.get("memoryInGB"), fields.get("memoryInGb")) {
            (Some(_), Some(second)) => {
                self.fault(second.span, Problem::DuplicateKey { key: "memoryInGb".to_owned() });
                return None;
            }
            (None, Some(_)) => "memoryInGb",
            _ => "memoryInGB",
        };
        let gigabytes = self.amount(fields, key)?;
        if gigabytes > MOST_GIGABYTES {
            self.unbelievable(fields, key);
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above zero and checked above"
        )]
        let bytes = (gigabytes * f64::from(1_u32 << 30)).round() as u64;
        Some(bytes.max(1))
    }

    fn unbelievable(&mut self, fields: &Fields<'_>, key: &'static str) {
        if let Some(node) = fields.get(key)
            && let Data::Scalar(scalar) = &node.data
        {
            let problem = Problem::Unbelievable { what: key.to_owned(), value: escape(&scalar.text, 60) };
            self.fault(node.span, problem);
        }
    }

    fn gpu(&mut self, fields: &Fields<'_>, note_differences: bool) -> Option<RequestedGpu> {
        let node = fields.get("gpu")?;
        let path = fields.path_of("gpu");
        let fields = self.fields(node, &path, &GPU)?;
        self.required(&fields, "count");
        let count = self.whole(&fields, "count", 1, 64).and_then(|count| u32::try_from(count).ok());
        let sku = self.required_text(&fields, "sku").map(|name| GpuSku::named(&name));
        let gpu = RequestedGpu { count: count?, sku: sku? };
        if note_differences {
            let cards = if gpu.count == 1 { "one GPU".to_owned() } else { format!("{} GPUs", gpu.count) };
            let message = format!(
                "here it means {cards} of any kind; Azure ended GPUs in container instances on {GPUS_ENDED}: its \
                 checks let this pass and its deployment fails, so use Container Apps with serverless GPUs"
            );
            self.note(node.span, &path, NoteKind::Differs, message);
            if !matches!(gpu.count, 1 | 2 | 4) || matches!(gpu.sku, GpuSku::Other(_)) {
                let message = "Azure had 1, 2 or 4 of K80, P100 or V100";
                self.note(node.span, &path, NoteKind::Differs, message);
            }
        }
        Some(gpu)
    }
}
