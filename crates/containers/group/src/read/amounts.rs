//! Processors, memory and GPUs.

use crate::fault::Fault;
use crate::note::NoteKind;
use crate::resources::{GPUS_ENDED, RequestedGpu, Resources};

use super::fields::{Fields, GroupReader, Keys};

static RESOURCES: Keys = Keys {
    elsewhere: &[(AMOUNT_KEYS, "move it below `requests:`")],
    ..Keys::new("`resources`", &["requests", "limits"])
};
const AMOUNT_KEYS: &[&str] = &["cpu", "memoryInGB", "memoryInGb", "gpu"];
const OTHER_WORDS: (&[&str], &str) =
    (&["memory", "memoryInGiB", "memoryGB"], "write `memoryInGB:` and a number");
static REQUESTS: Keys = Keys { elsewhere: &[OTHER_WORDS], ..Keys::new("`requests`", AMOUNT_KEYS) };
static LIMITS: Keys = Keys { elsewhere: &[OTHER_WORDS], ..Keys::new("`limits`", AMOUNT_KEYS) };
static GPU: Keys = Keys::new("`gpu`", &["count", "sku"]);

/// Upper bound of the number of cores, beyond every machine.
const MOST_CORES: f64 = 65_536.0;

/// Upper bound of the memory in GB, beyond every machine.
const MOST_GIGABYTES: f64 = 1_048_576.0;

impl GroupReader {
    pub(super) fn resources(&mut self, container: &Fields<'_>) -> Option<Resources> {
        if container.get("resources").is_none() {
            let message = "Azure requires `requests` with `cpu` and `memoryInGB`; here nothing is limited";
            self.note_at(container, "resources", NoteKind::Differs, message);
        }
        let fields = self.map(container, "resources", &RESOURCES)?;
        self.required(&fields, "requests");
        let requests = self.map(&fields, "requests", &REQUESTS);
        let limits = self.map(&fields, "limits", &LIMITS);
        let limit = (
            limits.as_ref().and_then(|limits| self.cpu(limits)),
            limits.as_ref().and_then(|limits| self.memory(limits)),
            limits.as_ref().and_then(|limits| self.gpu(limits, false)),
        );
        let requests = requests?;
        self.required(&requests, "cpu");
        if requests.get("memoryInGb").is_none() {
            self.required(&requests, "memoryInGB");
        }
        let (cpu, memory) = (self.cpu(&requests), self.memory(&requests));
        let gpu = self.gpu(&requests, true);
        let (cpu, memory) = (cpu?, memory?);
        let below = [
            ("cpu", limit.0.is_some_and(|limit| limit < cpu)),
            ("memoryInGB", limit.1.is_some_and(|limit| limit < memory)),
        ];
        for (what, _) in below.iter().filter(|(_, below)| *below) {
            let message = format!("the limit `{what}` is below the request");
            self.fault(fields.span_of("limits"), message, "raise the limit or lower the request");
        }
        Some(Resources {
            cpu_millis: limit.0.unwrap_or(cpu),
            memory_bytes: limit.1.unwrap_or(memory),
            gpu: gpu.or(limit.2),
        })
    }

    fn cpu(&mut self, fields: &Fields<'_>) -> Option<u32> {
        let cores = self.amount(fields, "cpu", MOST_CORES)?;
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
                self.faults.push(Fault::duplicate_key(second.span, "memoryInGb"));
                return None;
            }
            (None, Some(_)) => "memoryInGb",
            _ => "memoryInGB",
        };
        let gigabytes = self.amount(fields, key, MOST_GIGABYTES)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "above zero and checked above"
        )]
        let bytes = (gigabytes * f64::from(1_u32 << 30)).round() as u64;
        Some(bytes.max(1))
    }

    fn gpu(&mut self, amounts: &Fields<'_>, note_differences: bool) -> Option<RequestedGpu> {
        let fields = self.map(amounts, "gpu", &GPU)?;
        self.required(&fields, "count");
        let count = self.whole(&fields, "count", 1, 64);
        let sku = self.required_text(&fields, "sku");
        let gpu = RequestedGpu::new(count?, sku?);
        if note_differences {
            let cards = if gpu.count == 1 { "one GPU".to_owned() } else { format!("{} GPUs", gpu.count) };
            let message = format!(
                "here it means {cards} of any kind; Azure ended GPUs in container instances on {GPUS_ENDED}: its \
                 checks let this pass and its deployment fails, so use Container Apps with serverless GPUs"
            );
            self.note_at(amounts, "gpu", NoteKind::Differs, message);
            if !gpu.was_offered() {
                let message = "Azure had 1, 2 or 4 of K80, P100 or V100";
                self.note_at(amounts, "gpu", NoteKind::Differs, message);
            }
        }
        Some(gpu)
    }
}
