//! Layers, written as container tools write them.

const BLOCK: usize = 512;

/// A tar file in the making.
#[derive(Default)]
pub struct Tar {
    bytes: Vec<u8>,
}

impl Tar {
    pub fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.entry(path, b'0', 0o644, "", contents.as_ref())
    }

    pub fn program(self, path: &str, contents: impl AsRef<[u8]>) -> Self {
        self.entry(path, b'0', 0o755, "", contents.as_ref())
    }

    pub fn symlink(self, path: &str, to: &str) -> Self {
        self.entry(path, b'2', 0o777, to, b"")
    }

    fn entry(mut self, path: &str, kind: u8, mode: u32, link: &str, contents: &[u8]) -> Self {
        let mut header = vec![0_u8; BLOCK];
        assert!(path.len() <= 100 && link.len() <= 100, "longer names need extended headers");
        put(&mut header, 0, path.as_bytes());
        put(&mut header, 100, format!("{mode:07o}\0").as_bytes());
        put(&mut header, 124, format!("{:011o}\0", contents.len()).as_bytes());
        put(&mut header, 148, b"        ");
        put(&mut header, 156, &[kind]);
        put(&mut header, 157, link.as_bytes());
        put(&mut header, 257, b"ustar\x0000");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
        self.bytes.extend(header);
        self.bytes.extend(contents);
        self.bytes.resize(self.bytes.len().next_multiple_of(BLOCK), 0);
        self
    }

    /// The file, with the two blocks of zeros at its end.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len() + 2 * BLOCK, 0);
        self.bytes
    }
}

fn put(header: &mut [u8], at: usize, bytes: &[u8]) {
    header[at..at + bytes.len()].copy_from_slice(bytes);
}
