//! The table of preflight.

use cudock_base::Usd;
use cudock_facts::finding::{Finding, Severity};
use cudock_facts::services::AzureService;
use schemars::JsonSchema;
use serde::Serialize;

/// Whether a deployment will succeed, as far as can be known before it costs money.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PreflightReport {
    /// Rows that hold for all placements: sign-in, subscription, rights.
    pub account: Vec<PreflightRow>,
    /// The placements, the best first.
    pub candidates: Vec<CandidateReport>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CandidateReport {
    #[schemars(with = "String")]
    pub service: AzureService,
    pub size: Option<String>,
    pub region: String,
    pub is_spot: bool,
    pub price_per_hour: Option<Usd>,
    /// The worst of its rows.
    pub verdict: PreflightVerdict,
    pub rows: Vec<PreflightRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PreflightRow {
    pub question: Question,
    pub verdict: PreflightVerdict,
    /// The figures that decide.
    pub detail: String,
    /// The problem and its fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
}

/// The verdicts, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreflightVerdict {
    Ok,
    /// Azure did not report it.
    Unknown,
    Warning,
    /// The deployment would fail.
    Blocked,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    SignIn,
    Subscription,
    Rights,
    SelfDestruction,
    Locks,
    /// The account, workspace or environment that is used.
    Existing,
    ImagePull,
    Providers,
    Offered,
    FamilyQuota,
    RegionalQuota,
    SpotQuota,
    ServiceQuota,
    Retirement,
    ImageRuns,
    Price,
}

impl PreflightVerdict {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Blocked => "blocked",
        }
    }
}

impl Question {
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignIn => "sign-in",
            Self::Subscription => "subscription",
            Self::Rights => "rights",
            Self::SelfDestruction => "deletes itself",
            Self::Locks => "locks",
            Self::Existing => "existing",
            Self::ImagePull => "image pull",
            Self::Providers => "providers",
            Self::Offered => "offered",
            Self::FamilyQuota => "family quota",
            Self::RegionalQuota => "regional quota",
            Self::SpotQuota => "Spot quota",
            Self::ServiceQuota => "service quota",
            Self::Retirement => "retirement",
            Self::ImageRuns => "image runs",
            Self::Price => "price",
        }
    }
}

impl PreflightRow {
    pub(crate) fn new(question: Question, verdict: PreflightVerdict, detail: impl Into<String>) -> Self {
        Self { question, verdict, detail: detail.into(), finding: None }
    }

    pub(crate) fn ok(question: Question, detail: impl Into<String>) -> Self {
        Self::new(question, PreflightVerdict::Ok, detail)
    }

    /// Adds what is wrong. Its severity is that of the verdict.
    pub(crate) fn because(
        mut self,
        code: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let severity = match self.verdict {
            PreflightVerdict::Blocked => Severity::Error,
            PreflightVerdict::Warning => Severity::Warning,
            PreflightVerdict::Ok | PreflightVerdict::Unknown => Severity::Note,
        };
        self.finding = Some(Finding::new(code, severity, message, fix));
        self
    }
}

impl CandidateReport {
    /// The placement in words: `vm Standard_NC24ads_A100_v4 westeurope spot`.
    pub fn name(&self) -> String {
        let spot = self.is_spot.then_some("spot");
        let parts = [Some(self.service.id()), self.size.as_deref(), Some(self.region.as_str()), spot];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    /// Why it cannot be deployed; empty if it can.
    pub fn obstacles(&self) -> Vec<&Finding> {
        let blocked = self.rows.iter().filter(|row| row.verdict == PreflightVerdict::Blocked);
        blocked.filter_map(|row| row.finding.as_ref()).collect()
    }
}

impl PreflightReport {
    /// Titles of [`Self::table`].
    pub const TITLES: [&str; 3] = ["QUESTION", "VERDICT", "DETAIL"];

    /// The first of the best `attempts` placements that nothing blocks.
    pub fn choice(&self, attempts: usize) -> Option<&CandidateReport> {
        let is_account_fine = self.account.iter().all(|row| row.verdict != PreflightVerdict::Blocked);
        let mut tried = self.candidates.iter().take(attempts.max(1)).filter(|_| is_account_fine);
        tried.find(|candidate| candidate.verdict != PreflightVerdict::Blocked)
    }

    /// The rows about the account and about a placement: question, verdict, detail.
    pub fn table(&self, candidate: Option<&CandidateReport>) -> Vec<Vec<String>> {
        let cells = |row: &PreflightRow| {
            vec![row.question.name().to_owned(), row.verdict.name().to_owned(), row.detail.clone()]
        };
        let rows = candidate.map(|candidate| candidate.rows.as_slice()).unwrap_or_default();
        self.account.iter().chain(rows).map(cells).collect()
    }

    /// The findings about the account and about a placement, the worst first.
    pub fn findings<'r>(&'r self, candidate: Option<&'r CandidateReport>) -> Vec<&'r Finding> {
        let rows = candidate.map(|candidate| candidate.rows.as_slice()).unwrap_or_default();
        let mut findings: Vec<&Finding> =
            self.account.iter().chain(rows).filter_map(|row| row.finding.as_ref()).collect();
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        findings
    }

    /// One line for each obstacle of the account, and for each placement that was passed over, with its reasons.
    pub fn passed_over(&self, attempts: usize) -> Vec<String> {
        let account = self.account.iter().filter(|row| row.verdict == PreflightVerdict::Blocked);
        let account = account.filter_map(|row| Some(row.finding.as_ref()?.message.clone()));
        let failed = self.candidates.iter().take(attempts.max(1));
        let failed = failed.take_while(|candidate| candidate.verdict == PreflightVerdict::Blocked);
        let failed = failed.map(|candidate| {
            let reasons: Vec<&str> =
                candidate.obstacles().into_iter().map(|finding| finding.message.as_str()).collect();
            format!("{}: {}", candidate.name(), reasons.join("; "))
        });
        account.chain(failed).collect()
    }
}
