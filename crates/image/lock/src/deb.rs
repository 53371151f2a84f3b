//! The members of a `.deb`: an `ar` archive with a compressed tar archive in it.

use std::io::{self, BufReader, Read};

use lzma_rust2::XzReader;

const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER: usize = 60;
/// Maximum number of `ar` members.
const MAX_MEMBERS: usize = 32;

/// A `.deb` that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DebError {
    #[error("not a Debian package: {0}")]
    Format(&'static str),
    #[error("cannot read: {0}")]
    Read(#[from] io::Error),
}

/// Decodes xz. Its dictionary has the size that the file claims, but only pages that are used take memory.
pub fn xz<'r>(reader: impl Read + 'r) -> Box<dyn Read + 'r> {
    Box::new(XzReader::new(BufReader::new(reader), true))
}

/// Decodes gzip.
pub fn gzip<'r>(reader: impl Read + 'r) -> Box<dyn Read + 'r> {
    Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(reader)))
}

/// The tar stream of a package's files: its member `data.tar`, decoded.
pub fn open<'r>(mut reader: impl Read + 'r) -> Result<Box<dyn Read + 'r>, DebError> {
    let mut magic = [0; 8];
    reader.read_exact(&mut magic).map_err(|_| DebError::Format("it is too short"))?;
    if &magic != MAGIC {
        return Err(DebError::Format("it is not an ar archive"));
    }
    for _ in 0..MAX_MEMBERS {
        let mut header = [0; HEADER];
        reader.read_exact(&mut header).map_err(|_| DebError::Format("it has no data.tar"))?;
        let (name, size) = parse_header(&header).ok_or(DebError::Format("invalid member header"))?;
        if let Some(end) = name.strip_prefix("data.tar") {
            let member = reader.take(size);
            return match end {
                "" => Ok(Box::new(member)),
                ".gz" => Ok(gzip(member)),
                ".xz" => Ok(xz(member)),
                ".zst" => Ok(Box::new(zstd::stream::read::Decoder::new(member)?)),
                _ => Err(DebError::Format("unsupported compression of data.tar")),
            };
        }
        // Members begin at even offsets.
        let length = size.saturating_add(size & 1);
        let skipped = io::copy(&mut reader.by_ref().take(length), &mut io::sink())?;
        if skipped != length {
            return Err(DebError::Format("it is cut off"));
        }
    }
    Err(DebError::Format("it has too many members"))
}

/// The name and the size of a member.
fn parse_header(header: &[u8; HEADER]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(header).ok()?;
    let name = text.get(..16)?.trim_end().trim_end_matches('/');
    let size = text.get(48..58)?.trim().parse().ok()?;
    (text.get(58..)? == "`\n").then(|| (name.to_owned(), size))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn ar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (name, content) in members {
            writeln!(bytes, "{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`", 0, 0, 0, "100644", content.len())
                .unwrap();
            bytes.extend(*content);
            bytes.resize(bytes.len() + content.len() % 2, b'\n');
        }
        bytes
    }

    fn read(deb: &[u8]) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let mut data = open(deb).map_err(|error| error.to_string())?;
        data.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    #[test]
    fn every_compression_of_debian_is_read() {
        let content = b"tar content".repeat(100);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(&content).unwrap();
        let zst = zstd::encode_all(content.as_slice(), 1).unwrap();
        let mut xz = lzma_rust2::XzWriter::new(Vec::new(), lzma_rust2::XzOptions::default()).unwrap();
        xz.write_all(&content).unwrap();
        for (name, data) in [
            ("data.tar", content.clone()),
            ("data.tar.gz", gz.finish().unwrap()),
            ("data.tar.zst", zst),
            ("data.tar.xz/", xz.finish().unwrap()),
        ] {
            let deb = ar(&[("debian-binary", b"2.0\n"), ("control.tar.xz", b"odd"), (name, &data)]);
            assert_eq!(read(&deb).unwrap(), content, "{name}");
        }
    }

    #[test]
    fn other_files_are_rejected() {
        for (deb, reason) in [
            (b"PK\x03\x04....".to_vec(), "not an ar archive"),
            (b"!<arch>".to_vec(), "too short"),
            (ar(&[("debian-binary", b"2.0\n")]), "no data.tar"),
            (ar(&[("data.tar.lzma", b"")]), "unsupported compression"),
            (ar(&[("debian-binary", b"2.0\n")])[..70].to_vec(), "cut off"),
            ([MAGIC.as_slice(), &[b'x'; 60]].concat(), "invalid member header"),
        ] {
            assert!(read(&deb).unwrap_err().contains(reason), "{reason}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in proptest::collection::vec(any::<u8>(), 0..200), end in 0..3_usize) {
            let name = ["data.tar.xz", "data.tar.gz", "data.tar.zst"][end];
            let _ = read(&ar(&[(name, &data)]));
            let _ = read(&[MAGIC.as_slice(), &data].concat());
            let _ = read(&ar(&[("data.tar.xz", &[b"\xfd7zXZ\0\0\x04".as_slice(), &data].concat())]));
        }
    }
}
