//! Rows about the account.

use cudock_azure::ExistingResources;
use cudock_azure::preflight::{
    PreflightVerdict, PullCredentials, PullResult, QueryResult, Question, Topic, judge,
};
use cudock_facts::Facts;
use cudock_facts::services::AzureService;
use serde_json::{Value, json};

use super::support::{
    SUBSCRIPTION, T4, candidate, error, fine_results, fix, ok, report, request_for, rows, verdict,
};

use PreflightVerdict::{Blocked, Ok as Fine, Unknown, Warning};

#[test]
fn everything_is_fine_if_azure_says_so() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    let report = report(&request, vec![]);
    let worst = report.account.iter().map(|row| row.verdict).max();
    assert_eq!(worst, Some(Fine), "{report:#?}");
    let not_fine: Vec<_> = report.candidates[0].rows.iter().filter(|row| row.verdict != Fine).collect();
    assert_eq!(not_fine.len(), 1, "{not_fine:?}");
    assert_eq!(not_fine[0].question, Question::ImageRuns, "nobody checked the image");
}

#[test]
fn nothing_is_fine_without_an_answer() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    for failure in [
        QueryResult::Failed("connection refused".into()),
        error(500, "InternalServerError"),
        error(403, "AuthorizationFailed"),
        ok(json!("<html>")),
    ] {
        let mut results = fine_results(&request);
        let topics: Vec<Topic> = results.all().map(|(topic, _)| topic.clone()).collect();
        for topic in topics {
            results.insert(topic, failure.clone());
        }
        let report = judge(&request, &results, &Facts::embedded());
        let rows_of = |question: Question| rows(&report, question);
        for question in [
            Question::Subscription,
            Question::Rights,
            Question::SelfDestruction,
            Question::Locks,
            Question::Providers,
            Question::Offered,
            Question::FamilyQuota,
        ] {
            for row in rows_of(question) {
                assert_eq!(row.verdict, Unknown, "{question:?} with {failure:?}: {row:?}");
            }
            assert!(!rows_of(question).is_empty(), "{question:?}");
        }
        assert!(report.choice(1).is_some(), "what is unknown does not block");
    }
}

#[test]
fn an_expired_sign_in_blocks() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    let found = report(&request, vec![(Topic::Locks, error(401, "ExpiredAuthenticationToken"))]);
    assert_eq!(verdict(&found, Question::SignIn), (Blocked, Some("CD0850")));
    assert!(found.choice(3).is_none());
    let silent = QueryResult::Failed("host not found".into());
    let mut results = fine_results(&request);
    let topics: Vec<Topic> = results.all().map(|(topic, _)| topic.clone()).collect();
    for topic in topics {
        results.insert(topic, silent.clone());
    }
    let found = judge(&request, &results, &Facts::embedded());
    assert_eq!(verdict(&found, Question::SignIn), (Unknown, Some("CD0867")));
}

#[test]
fn the_state_of_a_subscription_decides() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    let state = |state: &str, limit: &str| {
        ok(
            json!({"state": state, "displayName": "n", "subscriptionPolicies": {"spendingLimit": limit, "quotaId": "x"}}),
        )
    };
    for (answer, expected) in [
        (state("Enabled", "Off"), (Fine, None)),
        (state("Enabled", "On"), (Warning, Some("CD0851"))),
        (state("Warned", "Off"), (Warning, Some("CD0851"))),
        (state("PastDue", "Off"), (Warning, Some("CD0851"))),
        (state("Disabled", "Off"), (Blocked, Some("CD0851"))),
        (state("Deleted", "Off"), (Blocked, Some("CD0851"))),
        (state("Hibernating", "Off"), (Unknown, None)),
        (ok(json!({})), (Unknown, None)),
        (error(404, "SubscriptionNotFound"), (Blocked, Some("CD0851"))),
    ] {
        let found = report(&request, vec![(Topic::Subscription, answer.clone())]);
        assert_eq!(verdict(&found, Question::Subscription), expected, "{answer:?}");
    }
}

#[test]
fn rights_are_those_of_all_roles_together() {
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    let contributor = json!({"actions": ["*"], "notActions": ["Microsoft.Authorization/*/Delete", "Microsoft.Authorization/*/Write", "Microsoft.Authorization/elevateAccess/Action"]});
    let reader = json!({"actions": ["*/read"], "notActions": []});
    let administrator =
        json!({"actions": ["Microsoft.Authorization/roleAssignments/write"], "notActions": [], "future": 1});
    for (roles, rights, destruction) in [
        (vec![&contributor], Fine, Blocked),
        (vec![&contributor, &administrator], Fine, Fine),
        (vec![&reader], Blocked, Blocked),
        (vec![&reader, &administrator], Blocked, Fine),
        (vec![], Blocked, Blocked),
    ] {
        let found = report(&request, vec![(Topic::Permissions, ok(json!({"value": roles})))]);
        assert_eq!(verdict(&found, Question::Rights).0, rights, "{roles:?}");
        assert_eq!(verdict(&found, Question::SelfDestruction).0, destruction, "{roles:?}");
    }
    let mut with_identity = request;
    with_identity.existing.reaper_identity = Some("/subscriptions/s/x".into());
    let found = report(&with_identity, vec![(Topic::Permissions, ok(json!({"value": [contributor]})))]);
    assert_eq!(verdict(&found, Question::SelfDestruction), (Fine, None), "a prepared identity deletes");
    let found = report(&with_identity, vec![(Topic::Permissions, ok(json!({"value": [reader]})))]);
    let row = &rows(&found, Question::Rights)[0];
    assert!(
        row.detail.starts_with("lacks Microsoft.Resources/subscriptions/resourceGroups/write and "),
        "{row:?}"
    );
    let fix = &row.finding.as_ref().unwrap().fix;
    assert_eq!(
        *fix,
        format!(
            "az role assignment create --assignee YOU --role Contributor --scope /subscriptions/{SUBSCRIPTION}"
        )
    );
}

#[test]
fn only_locks_that_hold_for_the_deployment_block() {
    let lock = |scope: &str, level: &str| {
        let id = format!("{scope}/providers/microsoft.authorization/locks/keep");
        ok(json!({"value": [{"id": id, "name": "keep", "properties": {"level": level}}]}))
    };
    let s = format!("/subscriptions/{SUBSCRIPTION}");
    let ml = || {
        let mut request = request_for(vec![candidate(AzureService::Ml, T4, "westeurope")]);
        request.existing =
            ExistingResources { workspace: Some("team/space".into()), ..ExistingResources::default() };
        request
    };
    let vm = || request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    for (request, answer, expected) in [
        (vm(), lock(&s, "CanNotDelete"), Blocked),
        (vm(), lock(&s.to_uppercase(), "ReadOnly"), Blocked),
        (vm(), lock(&format!("{s}/resourceGroups/team"), "CanNotDelete"), Fine),
        (
            vm(),
            lock(
                &format!("{s}/resourceGroups/team/providers/Microsoft.Storage/storageAccounts/x"),
                "ReadOnly",
            ),
            Fine,
        ),
        (ml(), lock(&format!("{s}/resourceGroups/team"), "CanNotDelete"), Blocked),
        (ml(), lock(&format!("{s}/resourceGroups/other"), "CanNotDelete"), Fine),
        (vm(), ok(json!({"value": [{"id": 5}, {}]})), Fine),
    ] {
        let found = report(&request, vec![(Topic::Locks, answer.clone())]);
        assert_eq!(verdict(&found, Question::Locks).0, expected, "{answer:?}");
    }
}

#[test]
fn every_provider_of_the_service_must_be_registered() {
    let states = |logic: &str, compute: &str| {
        ok(json!({"value": [
            {"namespace": "Microsoft.Compute", "registrationState": compute},
            {"namespace": "Microsoft.Network", "registrationState": "Registered"},
            {"namespace": "Microsoft.Logic", "registrationState": logic},
        ]}))
    };
    let request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    for (answer, expected, detail) in [
        (states("Registered", "Registered"), Fine, "registered"),
        (states("Registering", "Registered"), Warning, "Microsoft.Logic"),
        (states("Registering", "Unregistered"), Blocked, "Microsoft.Compute"),
        (states("Unregistering", "NotRegistered"), Blocked, "Microsoft.Compute, Microsoft.Logic"),
        (states("Registered", "SomethingNew"), Blocked, "Microsoft.Compute"),
        (ok(json!({"value": []})), Blocked, "Microsoft.Compute, Microsoft.Network, Microsoft.Logic"),
    ] {
        let found = report(&request, vec![(Topic::Providers, answer)]);
        let row = &rows(&found, Question::Providers)[0];
        assert_eq!((row.verdict, row.detail.as_str()), (expected, detail));
    }
    let found = report(&request, vec![(Topic::Providers, states("Registered", "Unregistered"))]);
    let fix = fix(&found, Question::Providers);
    assert_eq!(fix, "az provider register --namespace Microsoft.Compute --wait");
}

#[test]
fn the_registry_says_who_may_pull() {
    let denied = PullResult::Denied;
    for (service, result, expected) in [
        (AzureService::Vm, PullResult::Allowed, (Fine, None)),
        (AzureService::Vm, denied(PullCredentials::Account), (Blocked, Some("CD0864"))),
        (AzureService::Vm, denied(PullCredentials::Password), (Blocked, Some("CD0864"))),
        (AzureService::Vm, denied(PullCredentials::Anonymous), (Blocked, Some("CD0864"))),
        (AzureService::Ml, denied(PullCredentials::Anonymous), (Warning, Some("CD0864"))),
        (AzureService::Vm, PullResult::NotFound, (Blocked, Some("CD0865"))),
        (AzureService::Vm, PullResult::Unreachable("timed out".into()), (Unknown, Some("CD0867"))),
    ] {
        let mut request = request_for(vec![candidate(service, T4, "westeurope")]);
        request.pull = Some(result.clone());
        assert_eq!(
            verdict(&report(&request, vec![]), Question::ImagePull),
            expected,
            "{service:?} {result:?}"
        );
    }
}

#[test]
fn the_identity_that_pulls_needs_a_role() {
    let mut request = request_for(vec![candidate(AzureService::Vm, T4, "westeurope")]);
    request.pull_identity = Some("/subscriptions/s/x/puller".into());
    request.pull = Some(PullResult::Allowed);
    let identity = || ok(json!({"properties": {"principalId": "p"}}));
    let roles = |role: &str| {
        let id = format!("/subscriptions/s/providers/Microsoft.Authorization/roleDefinitions/{role}");
        ok(json!({"value": [{"properties": {"roleDefinitionId": id, "scope": "/subscriptions/s"}}]}))
    };
    let none: Value = json!({"value": []});
    for (identity, roles, expected) in [
        (identity(), roles("7F951DDA-4ed3-4680-a7ca-43fe172d538d"), (Fine, None)),
        (identity(), roles("acdd72a7-3385-48ef-bd42-f606fba81ae7"), (Warning, Some("CD0864"))),
        (identity(), ok(none), (Warning, Some("CD0864"))),
        (error(404, "ResourceNotFound"), error(404, "x"), (Blocked, Some("CD0869"))),
        (identity(), error(403, "AuthorizationFailed"), (Unknown, Some("CD0867"))),
    ] {
        let changes = vec![(Topic::PullIdentity, identity), (Topic::PullRoles, roles)];
        assert_eq!(verdict(&report(&request, changes), Question::ImagePull), expected);
    }
    request.pull = Some(PullResult::NotFound);
    let changes = vec![
        (Topic::PullIdentity, identity()),
        (Topic::PullRoles, roles("7f951dda-4ed3-4680-a7ca-43fe172d538d")),
    ];
    assert_eq!(
        verdict(&report(&request, changes), Question::ImagePull),
        (Blocked, Some("CD0865")),
        "no role helps"
    );
}
