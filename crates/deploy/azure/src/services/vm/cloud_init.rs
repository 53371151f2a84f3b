//! The start script of a virtual machine: installs a container runtime, pulls the image, runs the
//! container, and writes its result to a file.
//!
//! All words of the user are quoted for the shell, and the scripts are base64 in the YAML, so that nothing in them can be
//! taken for YAML or for another command.

use std::fmt::Write as _;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cudock_base::Secret;
use cudock_base::shell::quote;

use crate::services::bodies::names::Names;
use crate::services::checks::machine::Machine;
use crate::services::idle::wait_until_idle;
use crate::services::reaper;
use crate::spec::{Checkpoints, DeploymentSpec, RegistryAccess, SpecVariable, WorkKind};

/// Waits for the result of the script below, and ends with its code.
pub(super) const WAIT: &str = "until [ -e /var/lib/cudock/result ]; do sleep 2; done\n\
tail -c 2000 /var/lib/cudock/log\n\
exit \"$(cat /var/lib/cudock/result)\"\n";

/// The log of the container, and before it runs that of the start.
pub(super) const LOG: &str = "docker logs --tail 200 cudock 2>&1 || tail -n 200 /var/lib/cudock/log";

/// The cloud-init data in base64. It holds the secrets of the workload.
pub(super) fn custom_data(spec: &DeploymentSpec, machine: &Machine) -> Secret {
    let mut files = vec![("/opt/cudock/start.sh", start_script(spec, machine))];
    files.extend(spec.idle.map(|idle| ("/opt/cudock/watchdog.sh", watchdog_script(spec, idle))));
    let mut text = "#cloud-config\nwrite_files:\n".to_owned();
    for (path, script) in &files {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "- path: {path}\n  permissions: '0700'\n  encoding: b64\n  content: {}\n",
            STANDARD.encode(script)
        );
    }
    text.push_str("runcmd:\n");
    for (path, _) in &files {
        let unit = path.trim_start_matches("/opt/cudock/").trim_end_matches(".sh");
        let _ = writeln!(text, "- [systemd-run, --unit, cudock-{unit}, {path}]");
    }
    Secret::new(STANDARD.encode(text))
}

/// Whether the data would show a secret.
pub(super) fn has_secrets(spec: &DeploymentSpec) -> bool {
    spec.checkpoints.is_some()
        || matches!(spec.registry, Some(RegistryAccess::Password { .. }))
        || spec.variables.iter().any(|variable| matches!(variable, SpecVariable::Secret { .. }))
}

fn start_script(spec: &DeploymentSpec, machine: &Machine) -> String {
    let has_gpu = machine.driver.is_some();
    let mut script = "#!/bin/bash\n\
        set -uo pipefail\n\
        mkdir -p /var/lib/cudock\n\
        exec > >(tee -a /var/lib/cudock/log > /dev/ttyS0) 2>&1\n\
        say() { echo \"cudock: $1\"; }\n\
        saver=\n\
        end() { [ -z \"$saver\" ] || kill $saver; echo \"$1\" > /var/lib/cudock/result.new && mv /var/lib/cudock/result.new /var/lib/cudock/result; exit \"$1\"; }\n\
        fail() { say \"$1\"; end 125; }\n\
        say install\n"
        .to_owned();
    script.push_str(APT);
    script.push_str(
        "command -v docker > /dev/null || { apt_get update && apt_get install -y docker.io; } || fail 'cannot install docker'\n",
    );
    if has_gpu {
        script.push_str(GPU);
    }
    script.push_str(&login(spec));
    let _ = write!(
        script,
        "say pull\ndocker pull {image} || fail 'cannot pull the image'\nsay start\n",
        image = quote(&spec.image)
    );
    script.push_str(&keep_checkpoints(spec));
    script.push_str(&run(spec, has_gpu));
    script
}

/// Fetches the checkpoints of an earlier run, and saves them every five minutes and when the
/// machine is evicted, which Azure announces 30 seconds before.
fn keep_checkpoints(spec: &DeploymentSpec) -> String {
    let Some(storage) = spec.checkpoints.as_ref().and_then(|checkpoints| checkpoints.storage.as_ref()) else {
        return String::new();
    };
    format!(
        "blob={blob}\n\
         kept=/var/lib/cudock/checkpoints\n\
         mkdir -p $kept\n\
         case \"$(curl -sS --retry 3 -o $kept.tar -w '%{{http_code}}' -H 'x-ms-version: 2021-12-02' \"$blob\")\" in\n\
         200) tar -xf $kept.tar -C $kept || fail 'the checkpoints are damaged' ;;\n\
         404) ;;\n\
         *) fail 'cannot read the checkpoints' ;;\n\
         esac\n\
         save() {{\n\
         touch $kept.next\n\
         [ ! -e $kept.saved ] || [ -n \"$(find $kept -newer $kept.saved -print -quit)\" ] || return 0\n\
         tar -cf $kept.tar -C $kept . && curl -fsS --retry 2 -X PUT -H 'x-ms-version: 2021-12-02' -H 'x-ms-blob-type: BlockBlob' --upload-file $kept.tar \"$blob\" && mv $kept.next $kept.saved && say 'checkpoints saved'\n\
         }}\n\
         is_evicted() {{ curl -fsS --noproxy '*' -m 2 -H Metadata:true 'http://169.254.169.254/metadata/scheduledevents?api-version=2020-07-01' | grep -q Preempt; }}\n\
         ( next=300; while sleep 2; do\n\
         if is_evicted; then touch $kept.evicted; say evicted; docker stop --time 10 cudock; save; exit; fi\n\
         next=$((next - 2)); [ $next -gt 0 ] || {{ save; next=300; }}\n\
         done ) &\n\
         saver=$!\n",
        blob = quote(storage.blob(&Checkpoints::archive(&spec.name)).expose()),
    )
}

/// Waits for the driver, which the image has or an extension installs, and for Docker to pass GPUs on.
const GPU: &str = "\
for attempt in $(seq 240); do nvidia-smi -L && break; sleep 5; done\n\
nvidia-smi -L || fail 'the GPU driver is not ready after 20 minutes'\n\
if ! docker info 2> /dev/null | grep -q nvidia; then\n\
curl -fsSL https://nvidia.github.io/libnvidia-container/gpgkey | gpg --dearmor -o /usr/share/keyrings/nvidia-container-toolkit.gpg\n\
echo 'deb [signed-by=/usr/share/keyrings/nvidia-container-toolkit.gpg] https://nvidia.github.io/libnvidia-container/stable/deb/amd64 /' > /etc/apt/sources.list.d/nvidia-container-toolkit.list\n\
{ apt_get update && apt_get install -y nvidia-container-toolkit && nvidia-ctk runtime configure --runtime=docker && systemctl restart docker; } || fail 'cannot install the NVIDIA container toolkit'\n\
fi\n";

/// The driver extension, the agent of the machine and its updates install packages at the same
/// time: `apt-get` can wait for the lock of packages, but not for those of lists and archives.
const APT: &str = "\
apt_get() { for attempt in $(seq 12); do DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 \"$@\" && return; sleep 10; done; return 1; }\n";

fn login(spec: &DeploymentSpec) -> String {
    match &spec.registry {
        None => String::new(),
        Some(RegistryAccess::Password { server, username, password }) => format!(
            "printf %s {password} | docker login --username {username} --password-stdin {server} || fail 'cannot sign in to the registry'\n",
            password = quote(password.expose()),
            username = quote(username),
            server = quote(server),
        ),
        // The machine's token is exchanged for one of the registry; the user name is the one for tokens.
        Some(RegistryAccess::Identity { server, identity }) => format!(
            "field() {{ python3 -c \"import json,sys; print(json.load(sys.stdin)['$1'])\"; }}\n\
             token=$(curl -fsS --noproxy '*' -H Metadata:true -G --data-urlencode resource=https://management.azure.com/ --data-urlencode msi_res_id={identity} 'http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01' | field access_token) || fail 'the identity has no token'\n\
             refresh=$(curl -fsS --data-urlencode grant_type=access_token --data-urlencode service={server} --data-urlencode access_token=\"$token\" https://{server}/oauth2/exchange | field refresh_token) || fail 'the registry refuses the identity'\n\
             printf %s \"$refresh\" | docker login --username 00000000-0000-0000-0000-000000000000 --password-stdin {server} || fail 'cannot sign in to the registry'\n",
            identity = quote(identity),
            server = quote(server),
        ),
    }
}

fn run(spec: &DeploymentSpec, has_gpu: bool) -> String {
    let mut script = String::new();
    let mut options = "--name cudock --shm-size 8g".to_owned();
    if has_gpu {
        options.push_str(" --gpus all");
    }
    if let Some(checkpoints) = &spec.checkpoints {
        let _ = write!(options, " --volume /var/lib/cudock/checkpoints:{}", quote(&checkpoints.directory));
    }
    for variable in &spec.variables {
        let value = match variable {
            SpecVariable::Plain { value, .. } => value,
            SpecVariable::Secret { value, .. } => value.expose(),
        };
        // Names with dots and dashes cannot be exported by a shell.
        let _ = write!(options, " --env {}", quote(&format!("{}={value}", variable.name())));
    }
    let (program, arguments) = spec.command.split_at(spec.command.len().min(1));
    if let [program] = program {
        let _ = write!(options, " --entrypoint {}", quote(program));
    }
    let arguments: Vec<_> = arguments.iter().map(|word| quote(word)).collect();
    let (image, arguments) = (quote(&spec.image), arguments.join(" "));
    match &spec.work {
        WorkKind::Serve { port, ready_path, .. } => {
            let _ = write!(
                script,
                "docker run -d --restart unless-stopped -p {port}:{port} {options} {image} {arguments} || fail 'cannot start the container'\n\
                 until {ready}; do\n\
                 [ \"$(docker inspect -f '{{{{.RestartCount}}}}' cudock)\" -lt 5 ] || {{ docker logs --tail 50 cudock; fail 'the container keeps failing'; }}\n\
                 sleep 2\n\
                 done\n\
                 say ready\n\
                 end 0\n",
                ready = match ready_path {
                    Some(path) => format!(
                        "curl -fsS -o /dev/null --noproxy '*' {}",
                        quote(&format!("http://127.0.0.1:{port}{path}"))
                    ),
                    None => format!("(exec 3<> /dev/tcp/127.0.0.1/{port}) 2> /dev/null"),
                },
            );
        }
        WorkKind::Job { items, time_limit, retries, .. } => {
            let _ = write!(
                script,
                "run() {{\n\
                 for attempt in $(seq 0 {retries}); do\n\
                 docker rm -f cudock > /dev/null 2>&1\n\
                 timeout --kill-after 30 {limit} docker run {options} {image} {arguments} \"$@\"\n\
                 code=$?\n\
                 [ ! -e /var/lib/cudock/checkpoints.evicted ] || sleep 300\n\
                 [ $code -ne 0 ] || return 0\n\
                 done\n\
                 return $code\n\
                 }}\n\
                 result=0\n",
                limit = time_limit.as_secs().max(1),
            );
            let none = [Vec::new()];
            for item in if items.is_empty() { none.as_slice() } else { items.as_slice() } {
                let words: Vec<_> = item.iter().map(|word| quote(word)).collect();
                let _ = writeln!(
                    script,
                    "run {} || {{ code=$?; [ $result -ne 0 ] || result=$code; }}",
                    words.join(" ")
                );
            }
            if spec.checkpoints.is_some() {
                script.push_str("save\n");
            }
            script.push_str("say \"exit code $result\"\nend \"$result\"\n");
        }
        WorkKind::MultiNode { .. } => {}
    }
    script
}

/// Runs the reaper once the machine has been idle for a time. The machine's identity may do nothing else.
///
/// `cudock watchdog` also sees requests, output and MIG. Where it cannot be installed, the utilization of the GPUs decides.
fn watchdog_script(spec: &DeploymentSpec, idle: Duration) -> String {
    let names = Names::of_spec(spec);
    let port = match spec.work {
        WorkKind::Serve { port, .. } => format!(" --port {port}"),
        _ => String::new(),
    };
    format!(
        "#!/bin/bash\n\
         mkdir -p /var/lib/cudock\n\
         exec >> /var/lib/cudock/watchdog.log 2>&1\n\
         until docker inspect cudock > /dev/null; do sleep 10; done\n\
         imds() {{ curl -fsS --noproxy '*' -H Metadata:true \"http://169.254.169.254/metadata/$1\"; }}\n\
         case \"$(imds 'instance/compute/azEnvironment?api-version=2021-02-01&format=text')\" in\n\
         AzureUSGovernmentCloud) manager=https://management.usgovcloudapi.net CUDOCK_AZURE_CLOUD=AzureUSGovernment ;;\n\
         AzureChinaCloud) manager=https://management.chinacloudapi.cn CUDOCK_AZURE_CLOUD=AzureChinaCloud ;;\n\
         *) manager=https://management.azure.com CUDOCK_AZURE_CLOUD=AzureCloud ;;\n\
         esac\n\
         export CUDOCK_AZURE_CLOUD\n\
         {APT}\
         environment=/opt/cudock/environment\n\
         apt_get install -y python3-venv && python3 -m venv $environment && $environment/bin/pip install --quiet cudock=={version} &&\n\
         $environment/bin/cudock watchdog --subscription {subscription} --run {run} --vm {machine} --idle {seconds}s{port} --output /var/lib/docker/containers && exit\n\
         echo 'without cudock watchdog, the utilization of the GPUs decides'\n\
         {wait}\n\
         until token=$(imds \"identity/oauth2/token?api-version=2018-02-01&resource=$manager/\" | python3 -c \"import json,sys; print(json.load(sys.stdin)['access_token'])\") &&\n\
         curl -fsS -X POST -H \"Authorization: Bearer $token\" -d '' \"$manager{workflow}/triggers/{trigger}/run?api-version={logic}\"; do\n\
         sleep 60\n\
         done\n",
        version = env!("CARGO_PKG_VERSION"),
        subscription = names.subscription,
        run = names.run_id,
        machine = super::names::NAME,
        seconds = idle.as_secs(),
        wait = wait_until_idle(idle),
        workflow = reaper::workflow_id(names),
        trigger = reaper::TRIGGER,
        logic = reaper::LOGIC,
    )
}
