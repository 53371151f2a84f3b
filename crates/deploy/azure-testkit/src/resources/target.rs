//! The target that a path of Resource Manager names.

/// The only subscription.
pub const SUBSCRIPTION: &str = "11111111-2222-4333-8444-555555555555";

/// A resource, or a collection or an action of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// The id as in the request, without collection or action.
    pub(crate) id: String,
    /// The id in lower case: names are compared without regard to it.
    pub(crate) key: String,
    /// Namespace and types in lower case: `microsoft.app/jobs/executions`. Of a subscription or group: `subscriptions`,
    /// `microsoft.resources/resourcegroups`.
    pub(crate) kind: String,
    /// Namespace and types as in the request.
    pub(crate) type_name: String,
    pub(crate) name: String,
    /// The group's name as in the request.
    pub(crate) group: Option<String>,
    /// The rest of the path after the resource, in lower case: `start`, `usages`, `deployments`.
    pub(crate) tail: Option<String>,
}

const GROUPS: &str = "resourcegroups";
pub(crate) const GROUP_KIND: &str = "microsoft.resources/resourcegroups";

impl Target {
    /// Parses a path without its query. None if it does not begin with this subscription or `/providers/`.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let mut target = Self {
            id: String::new(),
            key: String::new(),
            kind: "tenant".to_owned(),
            type_name: String::new(),
            name: String::new(),
            group: None,
            tail: None,
        };
        let mut rest = segments.as_slice();
        while let Some((first, after)) = rest.split_first() {
            match first.to_ascii_lowercase().as_str() {
                "providers" if !after.is_empty() => {
                    let (namespace, mut names) = after.split_first()?;
                    target.push("providers", namespace);
                    (*namespace).clone_into(&mut target.type_name);
                    while let [kind, name, more @ ..] = names {
                        if kind.eq_ignore_ascii_case("providers") {
                            break;
                        }
                        target.push(kind, name);
                        target.type_name.extend(["/", kind]);
                        (*name).clone_into(&mut target.name);
                        names = more;
                    }
                    if let [tail] = names {
                        target.tail = Some(tail.to_ascii_lowercase());
                        names = &[];
                    }
                    target.kind = target.type_name.to_ascii_lowercase();
                    rest = names;
                }
                "subscriptions" => {
                    let (subscription, after) = after.split_first()?;
                    if !subscription.eq_ignore_ascii_case(SUBSCRIPTION) {
                        return None;
                    }
                    target.push("subscriptions", subscription);
                    "subscriptions".clone_into(&mut target.kind);
                    rest = after;
                }
                GROUPS if !after.is_empty() && target.kind == "subscriptions" => {
                    let (group, after) = after.split_first()?;
                    target.push("resourceGroups", group);
                    GROUP_KIND.clone_into(&mut target.kind);
                    "Microsoft.Resources/resourceGroups".clone_into(&mut target.type_name);
                    (*group).clone_into(&mut target.name);
                    target.group = Some((*group).to_owned());
                    rest = after;
                }
                tail => {
                    target.tail = Some([&[tail], after].concat().join("/").to_ascii_lowercase());
                    rest = &[];
                }
            }
        }
        target.key = target.id.to_ascii_lowercase();
        Some(target)
    }

    fn push(&mut self, kind: &str, name: &str) {
        self.id.extend(["/", kind, "/", name]);
    }

    /// The namespace of the provider, in lower case.
    pub(crate) fn namespace(&self) -> &str {
        self.kind.split('/').next().unwrap_or_default()
    }

    /// The id of the group, in lower case.
    pub(crate) fn group_key(&self) -> Option<String> {
        Some(group_key(self.group.as_ref()?))
    }

    /// The key of the resource that this one is a child or an extension of.
    pub(crate) fn parent_key(&self) -> String {
        let cut = |key: &str| key.rsplit_once('/').map_or_else(String::new, |(parent, _)| parent.to_owned());
        let parent = cut(&cut(&self.key));
        // A resource of the first level: its group, or what it extends.
        match parent.rsplit_once("/providers/") {
            Some((scope, last)) if !last.contains('/') => scope.to_owned(),
            _ => parent,
        }
    }
}

/// The id of a group in lower case.
pub(crate) fn group_key(name: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{}", name.to_ascii_lowercase())
}

/// Whether `key` is `scope` or lies within it.
pub(crate) fn is_within(key: &str, scope: &str) -> bool {
    key.strip_prefix(scope).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_resources_collections_and_actions() {
        for (path, kind, name, tail) in [
            ("", "subscriptions", "", None),
            ("/resourcegroups", "subscriptions", "", Some("resourcegroups")),
            ("/resourceGroups/G", GROUP_KIND, "G", None),
            ("/resourceGroups/G/resources", GROUP_KIND, "G", Some("resources")),
            ("/resourceGroups/G/providers/Microsoft.App/jobs/j", "microsoft.app/jobs", "j", None),
            (
                "/resourceGroups/G/providers/Microsoft.App//jobs/j/start",
                "microsoft.app/jobs",
                "j",
                Some("start"),
            ),
            ("/providers/Microsoft.Compute", "microsoft.compute", "", None),
            ("/providers/Microsoft.Compute/register", "microsoft.compute", "", Some("register")),
            (
                "/providers/Microsoft.Compute/locations/westus/usages",
                "microsoft.compute/locations",
                "westus",
                Some("usages"),
            ),
            (
                "/resourceGroups/G/providers/A.B/c/d/providers/Microsoft.Authorization/roleAssignments/r",
                "microsoft.authorization/roleassignments",
                "r",
                None,
            ),
        ] {
            let target = Target::parse(&format!("/subscriptions/{SUBSCRIPTION}{path}")).unwrap();
            assert_eq!(
                (target.kind.as_str(), target.name.as_str(), target.tail.as_deref()),
                (kind, name, tail),
                "{path}"
            );
        }
        assert_eq!(Target::parse("/subscriptions/other/resourceGroups/G"), None);
    }

    #[test]
    fn parents_are_groups_resources_and_scopes() {
        let group = group_key("g");
        for (path, parent) in [
            ("/providers/A.B/c/d", ""),
            ("/providers/A.B/c/d/e/f", "/providers/a.b/c/d"),
            ("/providers/A.B/c/d/providers/E.F/g/h", "/providers/a.b/c/d"),
        ] {
            let target =
                Target::parse(&format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/G{path}")).unwrap();
            assert_eq!(target.parent_key(), format!("{group}{parent}"), "{path}");
        }
    }
}
