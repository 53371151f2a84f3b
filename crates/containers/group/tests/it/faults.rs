//! Invalid files: what is reported, and where.

use cudock_group::read;

/// A group around the properties of its one container; these begin in line 6, column 7.
fn container(properties: &str) -> String {
    group(&format!("  containers:\n  - name: web\n    properties:\n{}", indented(properties, 6)))
}

/// A group around its properties, which begin in line 3.
fn group(properties: &str) -> String {
    format!("name: demo\nproperties:\n{properties}\n")
}

fn indented(text: &str, by: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("{}{line}", " ".repeat(by))).collect();
    lines.join("\n")
}

#[track_caller]
fn says(text: &str, expected: &[&str]) {
    let error = read(text).expect_err("the file is good");
    let found: Vec<String> = error.faults.iter().map(ToString::to_string).collect();
    assert_eq!(found, expected, "\n{text}");
}

const SMALL: &str = "image: nginx\nresources: {requests: {cpu: 1, memoryInGB: 1}}\n";

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    says(
        &container("imgae: nginx\n"),
        &["6:7: unknown key `imgae` in a container's properties; did you mean `image`?"],
    );
    says(
        &container(&format!("{SMALL}Command: [a]\nfrobnicate: 1\n")),
        &[
            "8:7: unknown key `Command` in a container's properties; did you mean `command`?",
            "9:7: unknown key `frobnicate` in a container's properties; remove it",
        ],
    );
    says(
        &container("image: nginx\nresources: {requests: {cpus: 1, cpu: 1, memory: 2, memoryInGB: 1}}\n"),
        &[
            "7:30: unknown key `cpus` in `requests`; did you mean `cpu`?",
            "7:47: unknown key `memory` in `requests`; write `memoryInGB:` and a number",
        ],
    );
}

#[test]
fn misplaced_keys_are_reported_with_where_they_belong() {
    let text = "name: demo\nosType: Linux\nproperties:\n  containers:\n  - name: web\n    image: nginx\n    properties: {image: nginx, restartPolicy: Never}\n";
    says(
        text,
        &[
            "2:1: unknown key `osType` in a group; move it below `properties:`",
            "6:5: unknown key `image` in a container; move it below the container's `properties:`",
            "7:32: unknown key `restartPolicy` in a container's properties; move it to the `properties:` of the group",
        ],
    );
    says(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n",
        &[
            "1:1: a group without `name`; add `name:`",
            "1:1: a group without `properties`; add `properties:`",
            "1:13: `apiVersion` cannot be `v1`; write `2021-09-01`, `2023-05-01`, `2025-09-01` or `2026-07-01`",
            "2:1: unknown key `kind` in a group; this is not a container group of Azure; it begins with `name:` and `properties:`",
            "3:1: unknown key `metadata` in a group; this is not a container group of Azure; it begins with `name:` and `properties:`",
            "4:1: unknown key `spec` in a group; this is not a container group of Azure; it begins with `name:` and `properties:`",
        ],
    );
    says(
        &group(
            "  initContainers:\n  - name: a\n    properties:\n      image: b\n      ports: []\n  containers:\n  - {name: c, properties: {image: d}}",
        ),
        &["7:7: unknown key `ports` in an init container's properties; init containers have none; remove it"],
    );
}

#[test]
fn values_of_the_wrong_type_say_what_is_wanted() {
    says(
        &container("image: 1.25\ncommand: sleep 5\nports: 80\nvolumeMounts: {a: b}\n"),
        &[
            "6:14: `image` should be text, but is a number; put it in quotes",
            "7:16: `command` should be a list, but is text; begin each member with `- ` on a separate line",
            "8:14: `ports` should be a list, but is a number; begin each member with `- ` on a separate line",
            "9:21: `volumeMounts` should be a list, but is a map; begin each member with `- ` on a separate line",
        ],
    );
    says(
        &container(
            "image: nginx\nresources: {requests: {cpu: '1', memoryInGB: much}}\nsecurityContext: {privileged: 'no', runAsUser: 010}\n",
        ),
        &[
            "7:35: `cpu` should be a number, but is text; write a number without quotes",
            "7:52: `memoryInGB` should be a number, but is text; write a number without quotes",
            "8:37: `privileged` should be true or false, but is text; write true or false without quotes",
            "8:54: `runAsUser` should be a whole number, but is a number; write a whole number",
        ],
    );
    says(
        "- a\n- b\n",
        &["1:1: `` should be a map, but is a list; write `key: value` lines below it, two spaces further in"],
    );
    says(
        &group("  containers:\n    name: web"),
        &["4:5: `containers` should be a list, but is a map; begin each member with `- ` on a separate line"],
    );
}

#[test]
fn names_follow_azures_rules_and_come_once() {
    says(
        &group(
            "  containers:\n  - {name: Web_1, properties: {image: a}}\n  - {properties: {image: a}}\n  - {name: same, properties: {image: a}}\n  initContainers:\n  - {name: same, properties: {image: a}}",
        ),
        &[
            "4:12: `Web_1` cannot be the name of a container; use 1 to 63 lower-case letters, digits and `-`, with a letter or digit at both ends",
            "5:5: a container without `name`; add `name:`",
            "6:12: duplicate container `same`; the first is on line 8; rename one",
        ],
    );
    says(
        "name: -demo\nproperties: {containers: [{name: a, properties: {image: b}}]}\n",
        &[
            "1:7: `-demo` cannot be the name of a group; use 1 to 63 letters, digits and `-`, with a letter or digit at both ends",
        ],
    );
}

#[test]
fn ports_are_real_and_taken_once() {
    says(
        &container(
            "image: a\nports:\n- port: 0\n- port: 65536\n- port: 80.5\n- {}\n- port: 80\n- {port: 80, protocol: tcp}\n- {port: 80, protocol: udp}\n- {port: 81, protocol: sctp}\n",
        ),
        &[
            "8:15: `port` is 0, which is not between 1 and 65535; write a whole number from 1 to 65535",
            "9:15: `port` is 65536, which is not between 1 and 65535; write a whole number from 1 to 65535",
            "10:15: `port` should be a whole number, but is a number; write a whole number",
            "11:9: a port without `port`; add `port:`",
            "13:16: duplicate port 80/tcp; the first is on line 12; containers of a group share their ports, so change one",
            "15:30: `protocol` cannot be `sctp`; write `TCP` or `UDP`",
        ],
    );
    says(
        &group(
            "  containers:\n  - {name: a, properties: {image: a, ports: [{port: 80}]}}\n  - {name: b, properties: {image: b, ports: [{port: 80}]}}\n  ipAddress: {type: Public, ports: [{port: 80}, {port: 80}]}",
        ),
        &[
            "5:53: duplicate port 80/tcp; the first is on line 4; containers of a group share their ports, so change one",
            "6:56: duplicate port 80/tcp; the first is on line 6; containers of a group share their ports, so change one",
        ],
    );
}

#[test]
fn addresses_and_dns_labels_are_checked() {
    let with = |address: &str| {
        group(&format!(
            "  containers: [{{name: a, properties: {{image: a, ports: [{{port: 80}}]}}}}]\n  ipAddress:\n{}",
            indented(address, 4)
        ))
    };
    let rule = "use 5 to 63 lower-case letters, digits and `-`, with a letter in front and a letter or digit at the end";
    for (label, shown) in [
        ("node", "node"),
        ("Label", "Label"),
        ("1label", "1label"),
        ("label-", "label-"),
        ("'a b c d'", "a b c d"),
    ] {
        says(
            &with(&format!("type: Public\nports: [{{port: 80}}]\ndnsNameLabel: {label}\n")),
            &[&format!("7:19: `{shown}` cannot be the name of a DNS label; {rule}")],
        );
    }
    says(
        &with("type: Publick\n"),
        &[
            "5:5: `ipAddress` without `ports`; add `ports:`",
            "5:11: `type` cannot be `Publick`; did you mean `Public`?",
        ],
    );
    says(
        &group(
            "  containers: [{name: a, properties: {image: a}}]\n  dnsConfig: {nameServers: [10.0.0.300], searchDomains: a b}",
        ),
        &["4:29: `10.0.0.300` is not an address; write one like `10.0.0.10` or `fd00::10`"],
    );
}

#[test]
fn amounts_are_above_zero_and_believable() {
    for (cpu, shown) in [("0", "0"), ("-1.5", "-1.5"), (".nan", ".nan"), (".inf", ".inf"), ("-.inf", "-.inf")]
    {
        says(
            &container(&format!("image: a\nresources:\n  requests:\n    cpu: {cpu}\n    memoryInGb: 1.5\n")),
            &[&format!("9:16: `cpu` is {shown}, which is not above zero; write a number above zero")],
        );
    }
    says(
        &container("image: a\nresources:\n  requests: {cpu: 1e9, memoryInGB: 99999999}\n"),
        &[
            "8:25: `cpu` is 1e9, more than any machine has; look at the unit: cores, and gigabytes",
            "8:42: `memoryInGB` is 99999999, more than any machine has; look at the unit: cores, and gigabytes",
        ],
    );
    says(
        &container(
            "image: a\nresources:\n  requests: {cpu: 2, memoryInGB: 1, memoryInGb: 1}\n  limits: {cpu: 1}\n",
        ),
        &["8:55: duplicate key `memoryInGb`; remove one of the two"],
    );
    says(
        &container(
            "image: a\nresources:\n  requests: {cpu: 2, memoryInGB: 2}\n  limits: {cpu: 1, memoryInGB: 1}\n",
        ),
        &[
            "9:17: the limit `cpu` is below the request; raise the limit or lower the request",
            "9:17: the limit `memoryInGB` is below the request; raise the limit or lower the request",
        ],
    );
    says(
        &container("image: a\nresources:\n  requests: {memoryInGB: 2, gpu: {count: 0}}\n"),
        &[
            "8:19: `requests` without `cpu`; add `cpu:`",
            "8:40: `gpu` without `sku`; add `sku:`",
            "8:48: `count` is 0, which is not between 1 and 64; write a whole number from 1 to 64",
        ],
    );
}

#[test]
fn a_probe_asks_exactly_one_thing() {
    says(
        &container(&format!(
            "{SMALL}livenessProbe: {{periodSeconds: 0}}\nreadinessProbe:\n  exec: {{command: [a]}}\n  httpGet: {{port: 80}}\n"
        )),
        &[
            "8:22: a probe with neither `exec` nor `httpGet`; add `exec: {command: […]}` or `httpGet: {path: /, port: …}`",
            "8:38: `periodSeconds` is 0, which is not between 1 and 86400; write a whole number from 1 to 86400",
            "11:18: a probe with both `exec` and `httpGet`; keep one of the two",
        ],
    );
    says(
        &container(&format!(
            "{SMALL}livenessProbe: {{exec: {{command: []}}}}\nreadinessProbe: {{httpGet: {{path: 'a b', scheme: ftp}}}}\n"
        )),
        &[
            "8:29: a probe without a command to run; write `command:` as a list with the program first",
            "9:33: `httpGet` without `port`; add `port:`",
            "9:40: `path` holds a character that cannot be in it; write blanks as `%20`",
            "9:55: `scheme` cannot be `ftp`; write `http` or `https`",
        ],
    );
    says(
        &container(&format!("{SMALL}livenessProbe: {{tcpSocket: {{port: 80}}, exec: {{command: [a]}}}}\n")),
        &["8:23: unknown key `tcpSocket` in a probe; Azure's probes have `exec` and `httpGet` only"],
    );
    says(
        &container(&format!(
            "{SMALL}livenessProbe:\n  httpGet:\n    port: 80\n    httpHeaders:\n    - {{name: \"a:b\", value: c}}\n    - {{name: d, value: \"e\\r\\nf: g\"}}\n"
        )),
        &[
            "12:20: `name` holds a character that cannot be in it; use letters, digits and `-`",
            "13:30: `value` holds a character that cannot be in it; remove line breaks",
        ],
    );
}

#[test]
fn volumes_are_of_one_kind_and_secrets_are_base64() {
    says(
        &group(
            "  containers: [{name: a, properties: {image: a}}]\n  volumes:\n  - name: none\n  - {name: empty, emptyDir: }\n  - {name: two, emptyDir: {}, secret: {}}\n  - name: s\n    secret:\n      good: aGk=\n      bad: not/base64!\n      ../up: aGk=\n  - {name: s, emptyDir: {}}\n  - {name: g, gitRepo: {url: x}}\n  - {name: h, hostPath: {path: /}}",
        ),
        &[
            "5:5: volume `none` has no kind; for an empty directory write `emptyDir: {}`",
            "6:5: volume `empty` has no kind; for an empty directory write `emptyDir: {}`",
            "7:39: volume `two` of several kinds: emptyDir and secret; keep one, and make volumes of the others",
            "11:12: `bad` is not base64; make it with `base64 -w0 FILE`",
            "12:7: `../up` cannot be the name of a file; write a plain name without `/`, at most 253 bytes; not `.` or `..`",
            "13:12: duplicate volume `s`; the first is on line 8; rename one",
            "14:24: `gitRepo` without `repository`; add `repository:`",
            "14:25: unknown key `url` in `gitRepo`; write `repository`, `directory` or `revision`",
            "15:5: volume `h` has no kind; for an empty directory write `emptyDir: {}`",
            "15:15: unknown key `hostPath` in a volume; Azure has no such volume; give a directory with `--volume NAME=DIR`",
        ],
    );
}

#[test]
fn mounts_need_a_volume_and_an_absolute_path_of_their_own() {
    let mounts = "volumeMounts:\n- {name: model, mountPath: /a}\n- {name: other, mountPath: /b}\n- {name: models, mountPath: data}\n- {name: models, mountPath: 'C:\\data'}\n- {name: models, mountPath: '/a:b'}\n- {name: models, mountPath: /a/../../etc}\n- {name: models, mountPath: //}\n- {name: models, mountPath: /same}\n- {name: models, mountPath: /same/}\n- {name: models}\n";
    let text = group(&format!(
        "  containers:\n  - name: web\n    properties:\n{}\n  volumes:\n  - {{name: models, emptyDir: {{}}}}",
        indented(&format!("{SMALL}{mounts}"), 6)
    ));
    says(
        &text,
        &[
            "9:16: no volume `model` to mount; did you mean `models`?",
            "10:16: no volume `other` to mount; add it to the group's `volumes:`",
            "11:35: nothing can be mounted at `data`: it is relative; write an absolute path such as `/data`",
            "12:35: nothing can be mounted at `C:\\\\data`: it is relative; write an absolute path such as `/data`",
            "13:35: nothing can be mounted at `/a:b`: it holds a colon; write an absolute path such as `/data`",
            "14:35: nothing can be mounted at `/a/../../etc`: it leads upwards; write an absolute path such as `/data`",
            "15:35: nothing can be mounted at `//`: it is the root; write an absolute path such as `/data`",
            "17:35: duplicate mount path `/same/`; the first is on line 16; rename one",
            "18:9: a mount without `mountPath`; add `mountPath:`",
        ],
    );
}

#[test]
fn a_variable_has_one_value_and_one_name() {
    says(
        &container(&format!(
            "{SMALL}environmentVariables:\n- {{name: A, value: a, secureValue: b}}\n- {{name: B=C, value: a}}\n- {{name: D, value: a}}\n- {{name: D, value: a}}\n- {{value: a}}\n- {{name: E, secureValue: [a]}}\n- {{name: F, valeu: a}}\n- {{name: G, value: \"a\\0b\"}}\n"
        )),
        &[
            "9:42: variable `A` with value and secureValue; keep one of them",
            "10:16: `B=C` cannot be the name of a variable; use letters, digits and `_`",
            "12:16: duplicate variable `D`; the first is on line 11; rename one",
            "13:9: a variable without `name`; add `name:`",
            "14:32: `secureValue` should be text, but is a list; write text",
            "15:19: unknown key `valeu` in a variable; did you mean `value`?",
            "16:26: `value` holds a character that cannot be in it; remove the zero byte",
        ],
    );
}

#[test]
fn unknown_enum_values_are_reported_with_the_choices() {
    says(
        &group(
            "  containers: [{name: a, properties: {image: a}}]\n  osType: Linx\n  restartPolicy: Sometimes",
        ),
        &[
            "4:11: `osType` cannot be `Linx`; did you mean `Linux`?",
            "5:18: `restartPolicy` cannot be `Sometimes`; write `Always`, `OnFailure` or `Never`",
        ],
    );
    says(
        "name: a\ntype: Microsoft.App/containerApps\nproperties: {containers: [{name: a, properties: {image: a}}]}\n",
        &[
            "2:7: `type` cannot be `Microsoft.App/containerApps`; write `Microsoft.ContainerInstance/containerGroups`",
        ],
    );
}

#[test]
fn what_does_nothing_here_is_still_checked() {
    says(
        &group(
            "  containers: [{name: a, properties: {image: a}}]\n  diagnostics: {logAnalytics: {workspaceID: w, workspaceKey: k}}\n  subnetIds: {id: x}\n  extensions: [{name: a, propertys: {}}]",
        ),
        &[
            "4:32: unknown key `workspaceID` in `logAnalytics`; did you mean `workspaceId`?",
            "5:14: `subnetIds` should be a list, but is a map; begin each member with `- ` on a separate line",
            "6:26: unknown key `propertys` in an extension; did you mean `properties`?",
        ],
    );
}

#[test]
fn what_is_no_yaml_says_where_it_stops() {
    let found = |text: &str| {
        let error = read(text).unwrap_err();
        let fault = &error.faults[0];
        (fault.span.line, fault.message.clone())
    };
    assert!(found("name: a\n\tproperties: b\n").1.starts_with("not YAML: "));
    for (text, line, message) in [
        ("name: [a\nproperties: {\n", 2, "not YAML: "),
        (
            "name: a\nname: b\nproperties: {containers: [{name: a, properties: {image: a}}]}\n",
            2,
            "duplicate key `name`",
        ),
        ("name: a\n---\nname: b\n", 2, "a second document in the file"),
        ("", 1, "the file is empty"),
        ("? [a]\n: b\n", 1, "a key that is a list or a map"),
        (
            "name: !gone a\nproperties: {containers: [{name: a, properties: {image: a}}]}\n",
            1,
            "unknown tag `",
        ),
    ] {
        let found = found(text);
        assert!(found.0 == line && found.1.starts_with(message), "{text}: {found:?}");
    }
    assert_eq!(found("# nothing\n").1, "the file is empty");
}

#[test]
fn a_group_needs_a_container() {
    says(
        &group("  containers: []"),
        &["3:3: a group without containers; add one below `properties.containers`"],
    );
    says(
        &group("  osType: Linux"),
        &["3:3: a group without containers; add one below `properties.containers`"],
    );
}

#[test]
fn columns_count_characters_and_bytes_count_bytes() {
    let text = "name: demo\nproperties: {containers: [{name: a, properties: {image: 'ä€😀', imgae: x}}]}\n";
    let error = read(text).unwrap_err();
    let fault = &error.faults[0];
    assert_eq!((fault.span.line, fault.span.column), (2, 64));
    assert_eq!(&text[fault.span.bytes()], "imgae");
}
