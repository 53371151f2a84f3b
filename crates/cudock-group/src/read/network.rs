//! Ports, the group's address, and how names are looked up.

use crate::fault::Problem;
use crate::group::{Address, Dns, Port, PortProtocol};
use crate::kept::OF_ADDRESS;
use crate::note::NoteKind;
use cudock_base::Span;

use super::fields::{Fields, GroupReader, Keys};
use super::names::SeenNames;

pub(super) static PORT: Keys = Keys {
    elsewhere: &[(
        &["containerPort", "hostPort", "targetPort"],
        "write `port:`; ports are not mapped in a group",
    )],
    ..Keys::new("a port", &["port", "protocol"])
};
pub(super) static ADDRESS: Keys =
    Keys { kept: OF_ADDRESS, ..Keys::new("`ipAddress`", &["type", "ports", "dnsNameLabel"]) };
pub(super) static DNS: Keys = Keys::new("`dnsConfig`", &["nameServers", "searchDomains", "options"]);

/// Azure's limit.
const MOST_PORTS: usize = 5;

/// The `port` of a port or probe.
pub(super) fn port_number(reader: &mut GroupReader, fields: &Fields<'_>) -> Option<u16> {
    reader.required(fields, "port")?;
    reader.whole(fields, "port", 1, 65_535).and_then(|port| u16::try_from(port).ok())
}

impl GroupReader {
    /// Ports with their places. `seen` are those that are taken.
    pub(super) fn ports(&mut self, fields: &Fields<'_>, seen: &mut SeenNames<Port>) -> Vec<(Port, Span)> {
        let path = fields.path_of("ports");
        let mut ports = Vec::new();
        for (index, node) in self.list(fields, "ports").iter().enumerate() {
            let Some(fields) = self.fields(node, &format!("{path}[{index}]"), &PORT) else { continue };
            let protocol = match self.choice(&fields, "protocol", &["TCP", "UDP"]) {
                Some("UDP") => PortProtocol::Udp,
                _ => PortProtocol::Tcp,
            };
            let Some(number) = port_number(self, &fields) else { continue };
            let span = fields.get("port").map_or(fields.span, |node| node.span);
            let port = Port { port: number, protocol };
            if let Some(first) = seen.again(port, span) {
                self.fault(span, Problem::DuplicatePort { port: number, protocol: protocol.name(), first });
            } else {
                ports.push((port, span));
            }
        }
        ports
    }

    pub(super) fn address(&mut self, properties: &Fields<'_>, exposed: &[Port]) -> Option<Address> {
        let node = properties.get("ipAddress")?;
        let path = properties.path_of("ipAddress");
        let fields = self.fields(node, &path, &ADDRESS)?;
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
            let span = fields.get("dnsNameLabel").map_or(fields.span, |node| node.span);
            let field = fields.path_of("dnsNameLabel");
            self.note(span, &field, NoteKind::Ignored, "no name is registered for the group");
        }
        let ports = ports.into_iter().map(|(port, _)| port).collect();
        Some(Address { public, ports, dns_name_label })
    }

    pub(super) fn dns(&mut self, properties: &Fields<'_>) -> Option<Dns> {
        let node = properties.get("dnsConfig")?;
        let fields = self.fields(node, &properties.path_of("dnsConfig"), &DNS)?;
        self.required(&fields, "nameServers");
        let mut servers = Vec::new();
        let nodes = self.list(&fields, "nameServers");
        for (index, node) in nodes.iter().enumerate() {
            let path = format!("{}[{index}]", fields.path_of("nameServers"));
            let Some(address) = self.loose_text(node, &path) else { continue };
            match address.parse() {
                Ok(server) => servers.push(server),
                Err(_) => self.fault(node.span, Problem::BadAddress { address }),
            }
        }
        let mut message = |key| {
            let text = self.text(&fields, key).unwrap_or_default();
            text.split_whitespace().map(str::to_owned).collect()
        };
        let search = message("searchDomains");
        let options = message("options");
        Some(Dns { servers, search, options })
    }
}
