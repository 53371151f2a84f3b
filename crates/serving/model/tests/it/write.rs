//! Writes model files for tests.

/// A protobuf message builder.
#[derive(Clone, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    pub(crate) fn number(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3);
        self.varint(value);
        self
    }

    pub(crate) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | 2);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(crate) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(crate) fn message(self, field: u64, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }
}

/// A tensor with inline data; `kind` is the ONNX data type.
pub(crate) fn tensor(name: &str, kind: u64, shape: &[u64], data: &[u8]) -> Message {
    let tensor = shape.iter().fold(Message::default(), |tensor, size| tensor.number(1, *size));
    tensor.number(2, kind).text(8, name).bytes(9, data)
}

/// A tensor with external data.
pub(crate) fn external(name: &str, kind: u64, shape: &[u64], location: &str, offset: u64) -> Message {
    let entry = |key: &str, value: &str| Message::default().text(1, key).text(2, value);
    let tensor = shape.iter().fold(Message::default(), |tensor, size| tensor.number(1, *size));
    tensor
        .number(2, kind)
        .text(8, name)
        .message(13, &entry("location", location))
        .message(13, &entry("offset", &offset.to_string()))
        .number(14, 1)
}

/// A dimension of a value: a size, or a name.
pub(crate) enum Dim {
    Size(u64),
    Named(&'static str),
}

/// A value of 32-bit numbers with its shape.
pub(crate) fn value(name: &str, shape: &[Dim]) -> Message {
    let shape = shape.iter().fold(Message::default(), |all, dim| {
        let dim = match dim {
            Dim::Size(size) => Message::default().number(1, *size),
            Dim::Named(name) => Message::default().text(2, name),
        };
        all.message(1, &dim)
    });
    let tensor = Message::default().number(1, 1).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

pub(crate) fn node(operator: &str, takes: &[&str], gives: &[&str]) -> Message {
    let node = takes.iter().fold(Message::default(), |node, name| node.text(1, name));
    gives.iter().fold(node, |node, name| node.text(2, name)).text(4, operator)
}

/// A model file with this graph.
pub(crate) fn model(graph: &Message) -> Vec<u8> {
    Message::default().number(1, 8).text(2, "test").message(7, graph).0
}

/// A safetensors file: names, formats, shapes and bytes of each.
pub(crate) fn safetensors(tensors: &[(&str, &str, &[u64], usize)]) -> Vec<u8> {
    let mut entries = vec![r#""__metadata__":{"format":"pt"}"#.to_owned()];
    let mut offset = 0;
    for (name, dtype, shape, length) in tensors {
        let end = offset + length;
        entries.push(format!(
            r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{offset},{end}]}}"#
        ));
        offset = end;
    }
    with_header(&format!("{{{}}}", entries.join(",")), offset)
}

/// A safetensors file with any header.
pub(crate) fn with_header(header: &str, data: usize) -> Vec<u8> {
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    file.resize(file.len() + data, 0);
    file
}
