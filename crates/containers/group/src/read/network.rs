//! Ports, the group's address, and how names are looked up.

use crate::fault::shown;
use crate::group::{Address, Dns, Port, PortProtocol};
use crate::note::NoteKind;
use cudock_base::Span;

use super::fields::{Fields, GroupReader, Keys};
use super::ignored::OF_ADDRESS;
use super::names::SeenNames;

static PORT: Keys = Keys {
    elsewhere: &[(
        &["containerPort", "hostPort", "targetPort"],
        "write `port:`; ports are not mapped in a group",
    )],
    ..Keys::new("a port", &["port", "protocol"])
};
static ADDRESS: Keys =
    Keys { ignored: OF_ADDRESS, ..Keys::new("`ipAddress`", &["type", "ports", "dnsNameLabel"]) };
static DNS: Keys = Keys::new("`dnsConfig`", &["nameServers", "searchDomains", "options"]);

/// Azure's limit.
const MOST_PORTS: usize = 5;

/// The `port` of a port or probe.
pub(super) fn port_number(reader: &mut GroupReader, fields: &Fields<'_>) -> Option<u16> {
    reader.required(fields, "port")?;
    reader.whole(fields, "port", 1, 65_535)
}

impl GroupReader {
    /// Ports with their places. `seen` are those that are taken.
    pub(super) fn ports(&mut self, fields: &Fields<'_>, seen: &mut SeenNames<Port>) -> Vec<(Port, Span)> {
        let mut ports = Vec::new();
        for fields in self.maps(fields, "ports", &PORT) {
            let protocol = match self.choice(&fields, "protocol", &["TCP", "UDP"]) {
                Some("UDP") => PortProtocol::Udp,
                _ => PortProtocol::Tcp,
            };
            let Some(number) = port_number(self, &fields) else { continue };
            let span = fields.span_of("port");
            let port = Port { port: number, protocol };
            if let Some(first) = seen.again(port, span) {
                let hint = format!(
                    "the first is on line {first}; containers of a group share their ports, so change one"
                );
                self.fault(span, format!("duplicate port {number}/{}", protocol.name()), hint);
            } else {
                ports.push((port, span));
            }
        }
        ports
    }

    pub(super) fn address(&mut self, properties: &Fields<'_>, exposed: &[Port]) -> Option<Address> {
        let fields = self.map(properties, "ipAddress", &ADDRESS)?;
        self.required(&fields, "type");
        let public = self.choice(&fields, "type", &["Public", "Private"]) == Some("Public");
        self.required(&fields, "ports");
        let ports = self.ports(&fields, &mut SeenNames::new());
        if ports.len() > MOST_PORTS {
            let message = format!("Azure publishes at most {MOST_PORTS} ports of a group");
            self.note(fields.span, &fields.path_of("ports"), NoteKind::Differs, message);
        }
        for (port, span) in ports.iter().filter(|(port, _)| !exposed.contains(port)) {
            let message = format!("no container names port {}/{}", port.port, port.protocol.name());
            self.note(*span, &fields.path_of("ports"), NoteKind::Differs, message);
        }
        let dns_name_label = self.dns_label(&fields);
        if dns_name_label.is_some() {
            let message = "no name is registered for the group";
            self.note_at(&fields, "dnsNameLabel", NoteKind::Ignored, message);
        }
        let ports = ports.into_iter().map(|(port, _)| port).collect();
        Some(Address { public, ports, dns_name_label })
    }

    pub(super) fn dns(&mut self, properties: &Fields<'_>) -> Option<Dns> {
        let fields = self.map(properties, "dnsConfig", &DNS)?;
        self.required(&fields, "nameServers");
        let mut servers = Vec::new();
        let nodes = self.list(&fields, "nameServers");
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{}[{index}]", fields.path_of("nameServers"));
            let Some(address) = self.loose_text_at(node, &path) else { continue };
            if let Ok(server) = address.parse() {
                servers.push(server);
            } else {
                let message = format!("`{}` is not an address", shown(&address));
                self.fault(node.span, message, "write one like `10.0.0.10` or `fd00::10`");
            }
        }
        let mut words = |key| {
            let text = self.text(&fields, key).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        Some(Dns { servers, search: words("searchDomains"), options: words("options") })
    }
}
