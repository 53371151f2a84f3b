//! Recognizes group files without parsing them.

/// Whether a text looks like a container group of Azure Container Instances.
pub fn is_group(text: &str) -> bool {
    let has = |key: &str| text.lines().any(|line| line.trim_start().starts_with(key));
    text.contains("Microsoft.ContainerInstance/containerGroups") || (has("properties:") && has("containers:"))
}

pub fn first_image(text: &str) -> Option<&str> {
    let value =
        text.lines().find_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix("image:"))?;
    Some(value.trim().trim_matches(['"', '\''])).filter(|image| !image.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_recognized_and_their_image_is_found() {
        let group =
            "name: a\nproperties:\n  containers:\n  - name: x\n    properties:\n      image: 'team/app:1'\n";
        assert!(is_group(group));
        assert_eq!(first_image(group), Some("team/app:1"));
        assert!(is_group("type: Microsoft.ContainerInstance/containerGroups\n"));
        assert!(!is_group("resources:\n  instance_type: Standard_NC6s_v3\n"));
        assert_eq!(first_image("image:\n"), None);
    }
}
