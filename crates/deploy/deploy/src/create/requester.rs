//! The user and time of a deployment: shared by all its requests.

use cudock_base::{Environment, Timestamp};

use crate::journal::known_state_id;

/// The subscription, if the user is not signed in.
const SUBSCRIPTION: &str = "AZURE_SUBSCRIPTION_ID";

/// The user who deploys, the subscription, and the time.
#[derive(Debug, Clone)]
pub struct Requester {
    pub subscription: String,
    pub owner: Owner,
    /// Time by the cloud's clock.
    pub now: Timestamp,
}

/// The owner of a deployment, as in its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The user on a machine, in the tag `cudock-owner`.
    pub name: String,
    /// The state directory whose journal knows the deployment, in the tag `cudock-state`; none if no journal does.
    pub state: Option<String>,
}

impl Requester {
    /// The requester of requests that are shown and not sent.
    pub fn of_dry_run(environment: &Environment) -> Self {
        let state = environment.state_directory().and_then(|directory| known_state_id(&directory));
        Self::offline(environment, Some(state.unwrap_or_else(|| "STATE".to_owned())))
    }

    /// The requester of requests that are sent by other programs: no journal records what they
    /// create.
    pub fn of_export(environment: &Environment) -> Self {
        Self::offline(environment, None)
    }

    fn offline(environment: &Environment, state: Option<String>) -> Self {
        let subscription = environment.get(SUBSCRIPTION).map(|id| id.to_string_lossy().into_owned());
        Self {
            subscription: subscription.unwrap_or_else(|| "SUBSCRIPTION".to_owned()),
            owner: Owner::new(environment, state),
            now: Timestamp::now(),
        }
    }
}

impl Owner {
    pub(crate) fn new(environment: &Environment, state: Option<String>) -> Self {
        let variable = |name: &str| environment.get(name).and_then(|value| value.to_str()).map(str::to_owned);
        let user = variable("USER").or_else(|| variable("LOGNAME")).unwrap_or_else(|| "user".to_owned());
        let host = std::fs::read_to_string(environment.system("proc/sys/kernel/hostname"));
        let host = host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
        Self { name: format!("{user}@{host}"), state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_is_the_user_on_this_machine() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(directory.path().join("proc/sys/kernel")).unwrap();
        std::fs::write(directory.path().join("proc/sys/kernel/hostname"), "laptop\n").unwrap();
        let owner = |variables: &[(&str, &str)]| {
            Owner::new(&Environment::of(directory.path(), variables.iter().copied()), None).name
        };
        assert_eq!(owner(&[("USER", "ada")]), "ada@laptop");
        assert_eq!(owner(&[("LOGNAME", "eve")]), "eve@laptop");
    }

    #[test]
    fn requests_that_are_not_sent_are_for_the_subscription_of_the_environment() {
        let environment = Environment::of("/nowhere", [("AZURE_SUBSCRIPTION_ID", "1-2")]);
        assert_eq!(Requester::of_dry_run(&environment).subscription, "1-2");
        let export = Requester::of_export(&Environment::of("/nowhere", [("USER", "ada")]));
        assert_eq!((export.subscription.as_str(), export.owner.state), ("SUBSCRIPTION", None));
    }
}
