use crate::tables::{CudaError, Family, FindingPage, FindingPages, Layer, Member, Message, Messages, Phase};

impl Messages {
    pub fn get(&self, id: &str) -> Option<&Message> {
        self.message.iter().find(|message| message.id == id)
    }

    /// A CUDA error by its number or its name: `209`, `cudaErrorNoKernelImageForDevice`.
    pub fn cuda_error(&self, code_or_name: &str) -> Option<&CudaError> {
        let code = code_or_name.parse::<u16>().ok();
        self.cuda_error.iter().find(|error| {
            let names = [Some(error.name.as_str()), error.driver_name.as_deref()];
            Some(error.code) == code
                || names.into_iter().flatten().any(|name| name.eq_ignore_ascii_case(code_or_name))
        })
    }

    /// A CUDA error by its text: `misaligned address`.
    pub fn cuda_error_with_text(&self, text: &str) -> Option<&CudaError> {
        let text = text.trim_end_matches('.');
        self.cuda_error.iter().find(|error| error.text.trim_end_matches('.').eq_ignore_ascii_case(text))
    }

    /// Adds a message for each member of a family, and for each CUDA error that no message is about.
    pub(crate) fn expand(&mut self) {
        let members =
            self.family.iter().flat_map(|family| family.member.iter().map(|member| family.message(member)));
        let mut more: Vec<Message> = members.collect();
        let has = |error: &&CudaError| {
            error.code != 0 && !self.message.iter().any(|message| message.cuda_code == Some(error.code))
        };
        more.extend(self.cuda_error.iter().filter(has).map(|error| {
            let mut message = error.message(
                self.cuda_error.iter().any(|other| other.code < error.code && other.text == error.text),
            );
            // A text that contains another one matches both patterns; the longer one is right.
            let part = |other: &&CudaError| {
                other.code != 0 && other.text != error.text && error.text.contains(&other.text)
            };
            let id = |other: &CudaError| {
                let known = self.message.iter().find(|message| message.cuda_code == Some(other.code));
                known.map_or_else(|| format!("cuda-{}", other.code), |message| message.id.clone())
            };
            message.wins_over = self.cuda_error.iter().filter(part).map(id).collect();
            message
        }));
        self.message.extend(more);
    }
}

impl Family {
    fn message(&self, member: &Member) -> Message {
        let name = member.name.as_deref().unwrap_or(&member.key);
        let own = self.pattern.replace("{key}", &format!("(?:{})", member.key));
        Message {
            id: format!("{}-{}", self.id, name.to_ascii_lowercase().replace('_', "-")),
            pattern: member.also.as_ref().map_or_else(|| own.clone(), |also| format!("{own}|{also}")),
            sample: self.sample.replace("{key}", if is_plain(&member.key) { &member.key } else { name }),
            samples: member.samples.clone(),
            layer: self.layer,
            phase: self.phase,
            title: self.title.replace("{key}", name).replace("{title}", &member.title),
            cause: member.cause.clone(),
            fix: if member.fix.is_empty() { self.fix.clone() } else { member.fix.clone() },
            cuda_code: None,
            probe: None,
            wins_over: self.wins_over.clone(),
            symptom: member.symptom,
            note: None,
            advice: None,
            source: self.source.clone(),
        }
    }
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

impl CudaError {
    /// Whether the text alone identifies a CUDA error: it is long, and not a common phrase.
    fn is_distinctive(&self) -> bool {
        let is_common = matches!(self.code, 9 | 31 | 210 | 401);
        self.text.len() >= 25 && self.text.split(' ').count() >= 3 && !is_common
    }

    /// The error as a message of a log: by either name, or by its text if the line mentions a CUDA error. A text that
    /// another error has as well is left to that one.
    fn message(&self, text_is_shared: bool) -> Message {
        let escaped = |text: &str| {
            let mut out = String::with_capacity(text.len());
            for c in text.chars() {
                if !(c.is_ascii_alphanumeric() || c == ' ' || c == '_') {
                    out.push('\\');
                }
                out.push(c);
            }
            out
        };
        let names = [Some(&self.name), self.driver_name.as_ref()];
        let mut patterns: Vec<String> =
            names.into_iter().flatten().map(|name| format!(r"\b{}\b", escaped(name))).collect();
        let by_text = format!(
            r"(?:(?:CUDA|Cuda|cuda)\b.{{0,60}}?(?:[Ee]rror|ERROR|[Ff]ailure|[Ff]ailed|[Ss]tatus)\b.{{0,30}}?[:;'] ?|Triton Error \[CUDA\]: ){}",
            escaped(&self.text)
        );
        if self.is_distinctive() && !text_is_shared {
            patterns.push(escaped(&self.text));
        } else if !text_is_shared {
            patterns.push(by_text);
        }
        let fallback =
            "Run with CUDA_LAUNCH_BLOCKING=1, or under `compute-sanitizer`, to find the call that failed.";
        Message {
            id: format!("cuda-{}", self.code),
            pattern: patterns.join("|"),
            sample: self.name.clone(),
            samples: if text_is_shared {
                Vec::new()
            } else {
                vec![format!("RuntimeError: CUDA error: {}", self.text)]
            },
            layer: Layer::Framework,
            phase: Phase::Run,
            title: format!("CUDA error {}: {}", self.code, self.text),
            cause: self.meaning.clone().map_or_else(
                || "The program made an invalid CUDA call.".to_owned(),
                |meaning| {
                    let mut chars = meaning.chars();
                    let first = chars.next().map(|c| c.to_ascii_uppercase());
                    first.into_iter().chain(chars).chain(['.']).collect()
                },
            ),
            fix: if self.fix.is_empty() { vec![fallback.to_owned()] } else { self.fix.clone() },
            cuda_code: Some(self.code),
            probe: None,
            wins_over: Vec::new(),
            symptom: false,
            note: None,
            advice: None,
            source: self.source.clone(),
        }
    }
}

impl FindingPages {
    pub fn get(&self, code: &str) -> Option<&FindingPage> {
        self.finding.iter().find(|page| page.code.eq_ignore_ascii_case(code))
    }
}
