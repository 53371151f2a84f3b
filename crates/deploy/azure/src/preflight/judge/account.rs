//! Rows about the account: sign-in, subscription, rights, locks, the registry.

use serde_json::Value;

use super::context::{CandidateContext, JudgeContext, unanswered};
use crate::preflight::codes;
use crate::preflight::query::Topic;
use crate::preflight::registry::{PullCredentials, PullResult};
use crate::preflight::report::{PreflightRow, PreflightVerdict, Question};
use crate::preflight::request::group_and_name;
use crate::preflight::results::{Gap, string};
use crate::preflight::rights::{ASSIGN_ROLES, Rights, actions_of};
use crate::services::backend::Backend;
use crate::services::backend::lookup::backend;
use crate::services::existing::bare_region;

/// Built-in roles that may pull: `AcrPull`, `AcrPush`, Container Registry Repository Reader, Contributor, Owner.
const PULL_ROLES: [&str; 5] = [
    "7f951dda-4ed3-4680-a7ca-43fe172d538d",
    "8311e382-0749-4cb8-b61a-304f252e45ec",
    "b93aa761-3e63-49ed-ac28-beffa264f7ac",
    "b24988ac-6180-42a0-ab88-20f7382dd24c",
    "8e3af657-a8ff-443c-a75c-2fe8c4bcb635",
];

impl JudgeContext<'_> {
    pub(super) fn account_rows(&self) -> Vec<PreflightRow> {
        let mut rows = vec![self.sign_in(), self.subscription(), self.self_destruction(), self.locks()];
        rows.extend(self.existing());
        rows.extend(self.image_pull());
        rows
    }

    fn sign_in(&self) -> PreflightRow {
        let (question, who) = (Question::SignIn, self.request.signed_in_as.as_str());
        if self.results.is_signed_out() {
            return PreflightRow::new(question, PreflightVerdict::Blocked, who).because(
                codes::NOT_SIGNED_IN,
                format!("Azure does not accept the sign-in ({who})"),
                "az login",
            );
        }
        match self.results.silence() {
            Some(reason) => unanswered(question, &Gap::Failed(reason.to_owned())),
            None => PreflightRow::ok(question, who),
        }
    }

    fn subscription(&self) -> PreflightRow {
        let (question, id) = (Question::Subscription, self.request.subscription.as_str());
        let row = |verdict, detail: &str, message: String, fix: &str| {
            PreflightRow::new(question, verdict, detail).because(codes::SUBSCRIPTION, message, fix)
        };
        let body = match self.results.body(&Topic::Subscription) {
            Ok(body) => body,
            Err(Gap::NotFound) => {
                let message = format!("subscription {id} does not exist, or the account has no role in it");
                return row(
                    PreflightVerdict::Blocked,
                    "not found",
                    message,
                    "az account list --output table",
                );
            }
            Err(gap) => return unanswered(question, &gap),
        };
        let name = string(body, "/displayName").unwrap_or(id);
        let has_limit = string(body, "/subscriptionPolicies/spendingLimit") == Some("On");
        match string(body, "/state") {
            Some("Enabled") if has_limit => row(
                PreflightVerdict::Warning,
                "spending limit",
                format!(
                    "subscription {name} has a spending limit, as free and credit offers have; those rarely get GPUs"
                ),
                "use a pay-as-you-go subscription: az account set --subscription NAME",
            ),
            Some("Enabled") => PreflightRow::ok(question, name),
            Some(state @ ("Warned" | "PastDue")) => row(
                PreflightVerdict::Warning,
                state,
                format!("subscription {name} is {state} and may be disabled"),
                "settle its bill in the portal, under Cost Management",
            ),
            Some(state @ ("Disabled" | "Deleted" | "Expired")) => row(
                PreflightVerdict::Blocked,
                state,
                format!("subscription {name} is {state}: nothing can be created in it"),
                "use another subscription: az account set --subscription NAME",
            ),
            state => {
                let detail = format!("unknown state {}", state.unwrap_or("(none)"));
                PreflightRow::new(question, PreflightVerdict::Unknown, detail)
            }
        }
    }

    fn self_destruction(&self) -> PreflightRow {
        let question = Question::SelfDestruction;
        if self.request.existing.reaper_identity.is_some() {
            return PreflightRow::ok(question, "by the given identity");
        }
        let rights = match self.rights() {
            Ok(rights) => rights,
            Err(gap) => return unanswered(question, &gap),
        };
        if rights.allows(ASSIGN_ROLES) {
            return PreflightRow::ok(question, "may assign the role");
        }
        let fix = format!(
            "az role assignment create --assignee YOU --role 'Role Based Access Control Administrator' --scope \
             /subscriptions/{}",
            self.request.subscription
        );
        PreflightRow::new(question, PreflightVerdict::Blocked, "may not assign roles").because(
            codes::NO_SELF_DESTRUCTION,
            format!("the account lacks {ASSIGN_ROLES}, so nothing in Azure could be allowed to delete the deployment"),
            fix,
        )
    }

    fn rights(&self) -> Result<Rights, Gap> {
        let body = self.results.body(&Topic::Permissions)?;
        Rights::read(body).ok_or_else(|| Gap::Failed("the response is not a list of permissions".to_owned()))
    }

    fn locks(&self) -> PreflightRow {
        let question = Question::Locks;
        let locks = match self.results.list(&Topic::Locks) {
            Ok(locks) => locks,
            Err(gap) => return unanswered(question, &gap),
        };
        let lock = locks.iter().find_map(|lock| self.relevant_lock(lock));
        let Some((name, scope)) = lock else { return PreflightRow::ok(question, "none") };
        PreflightRow::new(question, PreflightVerdict::Blocked, name).because(
            codes::LOCKED,
            format!("lock {name} on {scope} keeps resources from being created or deleted"),
            format!("az lock delete --ids {scope}/providers/Microsoft.Authorization/locks/{name}"),
        )
    }

    /// The name and scope of a lock on the subscription, or on the group of a workspace that is used. Locks on other groups
    /// do not matter: everything else is in groups of its own.
    fn relevant_lock<'v>(&self, lock: &'v Value) -> Option<(&'v str, &'v str)> {
        const SEPARATOR: &str = "/providers/Microsoft.Authorization/locks/";
        let id = string(lock, "/id")?;
        let at = id.to_ascii_lowercase().find(&SEPARATOR.to_ascii_lowercase())?;
        let (scope, name) = (id.get(..at)?, id.get(at + SEPARATOR.len()..)?);
        let subscription = format!("/subscriptions/{}", self.request.subscription);
        let existing = &self.request.existing;
        let mut used = self.request.backends().filter_map(|backend| backend.creates_in(existing));
        let group = used.next().and_then(group_and_name);
        let group = group.map(|(group, _)| format!("{subscription}/resourceGroups/{group}"));
        let is_relevant =
            [Some(subscription), group].into_iter().flatten().any(|one| one.eq_ignore_ascii_case(scope));
        is_relevant.then_some((name, scope))
    }

    /// The resources that the deployment uses and does not create, as they were read before the
    /// placements were chosen; no row if they were not.
    fn existing(&self) -> Option<PreflightRow> {
        let (question, details) = (Question::Existing, &self.request.existing.details);
        match (&details.missing, &details.region) {
            (Some(missing), _) => {
                let row = PreflightRow::new(question, PreflightVerdict::Blocked, "not found");
                Some(PreflightRow { finding: Some(missing.clone()), ..row })
            }
            (None, region) => {
                region.as_ref().map(|region| PreflightRow::ok(question, format!("in {region}")))
            }
        }
    }

    fn image_pull(&self) -> Option<PreflightRow> {
        let question = Question::ImagePull;
        let row = |verdict, detail: &str, code, message: &str, fix: &str| {
            PreflightRow::new(question, verdict, detail).because(code, message, fix)
        };
        let denied =
            |verdict, message: &str, fix: &str| row(verdict, "denied", codes::PULL_DENIED, message, fix);
        let own = self.request.pull.as_ref().map(|result| match result {
            PullResult::Allowed => PreflightRow::ok(question, "allowed"),
            PullResult::Denied(PullCredentials::Anonymous) if self.request.pull_identity.is_some() => denied(
                PreflightVerdict::Blocked,
                "the image is not public, and an identity can pull from Azure's registries only",
                "copy it to one: cudock copy IMAGE REGISTRY.azurecr.io/NAME",
            ),
            // Jobs and endpoints pull with the workspace's identity, whose roles no other identity
            // can test.
            PullResult::Denied(PullCredentials::Anonymous) if self.request.backends().any(Backend::pulls_with_own_identity) => denied(
                PreflightVerdict::Warning,
                "the image is not public: the identity of the workspace has to be allowed to pull it",
                "az role assignment create --assignee WORKSPACE_IDENTITY --role AcrPull --scope REGISTRY_ID",
            ),
            PullResult::Denied(PullCredentials::Anonymous) => denied(
                PreflightVerdict::Blocked,
                "the image is not public, and the deployment has neither an identity nor a password to pull it",
                "name an identity with the role AcrPull: --pull-identity RESOURCE-ID",
            ),
            PullResult::Denied(PullCredentials::Password) => denied(
                PreflightVerdict::Blocked,
                "the registry does not accept the user name and password of the group",
                "correct `imageRegistryCredentials` in the group's file",
            ),
            PullResult::Denied(PullCredentials::Account) => denied(
                PreflightVerdict::Blocked,
                "the registry does not let the account pull the image",
                "az role assignment create --assignee YOU --role AcrPull --scope $(az acr show --name REGISTRY --query id --output tsv)",
            ),
            PullResult::NotFound => row(
                PreflightVerdict::Blocked,
                "not found",
                codes::IMAGE_NOT_FOUND,
                "the registry has no such image",
                "check its name and tag, or push it",
            ),
            PullResult::Unreachable(reason) => unanswered(question, &Gap::Failed(reason.clone())),
        });
        // The rights of the service's identity matter more than those of the account.
        match own {
            Some(row) if row.verdict == PreflightVerdict::Blocked => Some(row),
            other => self.identity_pull().or(other),
        }
    }

    fn identity_pull(&self) -> Option<PreflightRow> {
        let identity = self.request.pull_identity.as_deref()?;
        let question = Question::ImagePull;
        let roles = match self
            .results
            .body(&Topic::PullIdentity)
            .and_then(|_| self.results.list(&Topic::PullRoles))
        {
            Ok(roles) => roles,
            Err(Gap::NotFound) => {
                let row = PreflightRow::new(question, PreflightVerdict::Blocked, "no such identity");
                let message = format!("the identity {identity} does not exist");
                return Some(row.because(
                    codes::RESOURCE_NOT_FOUND,
                    message,
                    "az identity list --output table",
                ));
            }
            Err(gap) => return Some(unanswered(question, &gap)),
        };
        let may_pull =
            roles.iter().filter_map(|role| string(role, "/properties/roleDefinitionId")).any(|role| {
                role.rsplit('/')
                    .next()
                    .is_some_and(|id| PULL_ROLES.iter().any(|known| known.eq_ignore_ascii_case(id)))
            });
        if may_pull {
            return Some(PreflightRow::ok(question, "the identity has a role"));
        }
        // A role of the tenant's own or one given to a group may allow it, too.
        let row = PreflightRow::new(question, PreflightVerdict::Warning, "no role found");
        Some(row.because(
            codes::PULL_DENIED,
            format!("the identity {identity} has no built-in role that lets it pull"),
            format!(
                "az role assignment create --assignee-object-id $(az identity show --ids {identity} --query principalId \
                 --output tsv) --assignee-principal-type ServicePrincipal --role AcrPull --scope REGISTRY_ID"
            ),
        ))
    }
}

impl CandidateContext<'_> {
    pub(super) fn rights(&self) -> PreflightRow {
        let question = Question::Rights;
        let rights = match self.context.rights() {
            Ok(rights) => rights,
            Err(gap) => return unanswered(question, &gap),
        };
        let actions = actions_of(self.candidate.service);
        let missing: Vec<&str> = actions.into_iter().filter(|action| !rights.allows(action)).collect();
        let Some(first) = missing.first() else { return PreflightRow::ok(question, "sufficient") };
        let more = match missing.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        PreflightRow::new(question, PreflightVerdict::Blocked, format!("lacks {first}{more}")).because(
            codes::MISSING_RIGHTS,
            format!("the account may not do what the deployment does: {}", missing.join(", ")),
            format!(
                "az role assignment create --assignee YOU --role Contributor --scope /subscriptions/{}",
                self.context.request.subscription
            ),
        )
    }

    pub(super) fn providers(&self) -> PreflightRow {
        let question = Question::Providers;
        let providers = match self.context.results.list(&Topic::Providers) {
            Ok(providers) => providers,
            Err(gap) => return unanswered(question, &gap),
        };
        let state = |namespace: &str| {
            let is_named = |one: &&Value| {
                string(one, "/namespace").is_some_and(|name| name.eq_ignore_ascii_case(namespace))
            };
            providers
                .iter()
                .find(is_named)
                .and_then(|one| string(one, "/registrationState"))
                .unwrap_or("NotRegistered")
        };
        let required = backend(self.candidate.service).requirements();
        let needed = [required.provider].into_iter().chain(required.other_providers.iter().copied());
        let needed: Vec<&str> = needed.chain(["Microsoft.Logic"]).collect();
        let with = |wanted: fn(&str) -> bool| -> Vec<&str> {
            needed.iter().copied().filter(|namespace| wanted(state(namespace))).collect()
        };
        let missing = with(|state| !matches!(state, "Registered" | "Registering"));
        let pending = with(|state| state == "Registering");
        let (verdict, names, message) = match (missing.as_slice(), pending.as_slice()) {
            ([], []) => return PreflightRow::ok(question, "registered"),
            ([], pending) => {
                (PreflightVerdict::Warning, pending, "are still being registered, which takes minutes")
            }
            (missing, _) => (PreflightVerdict::Blocked, missing, "are not registered in the subscription"),
        };
        let commands: Vec<String> =
            names.iter().map(|name| format!("az provider register --namespace {name} --wait")).collect();
        PreflightRow::new(question, verdict, names.join(", ")).because(
            codes::PROVIDER_NOT_REGISTERED,
            format!("resource providers {message}: {}", names.join(", ")),
            commands.join(" && "),
        )
    }

    /// Whether the service is in the region according to its provider; none if that is unknown.
    pub(super) fn is_served(&self) -> Option<bool> {
        let required = backend(self.candidate.service).requirements();
        let (namespace, kind) = (required.provider, required.resource_type);
        let is_field = |value: &Value, pointer: &str, name: &str| {
            string(value, pointer).is_some_and(|text| text.eq_ignore_ascii_case(name))
        };
        let providers = self.context.results.list(&Topic::Providers).ok()?;
        let provider = providers.iter().find(|one| is_field(one, "/namespace", namespace))?;
        let kinds = provider.get("resourceTypes")?.as_array()?;
        let kind = kinds.iter().find(|one| is_field(one, "/resourceType", kind))?;
        let regions = kind.get("locations")?.as_array()?.iter().filter_map(Value::as_str);
        let wanted = bare_region(&self.candidate.region);
        let regions: Vec<String> = regions.map(bare_region).collect();
        (!regions.is_empty()).then(|| regions.contains(&wanted))
    }

    pub(super) fn service(&self) -> &'static str {
        self.candidate.service.id()
    }
}
