//! Entry metadata that only unpacking needs: owner, time, extended attributes and sparse maps.

use super::header::{HeaderBlock, TarError};

/// The most extents a sparse file can have.
const MAX_EXTENTS: usize = 100_000;

/// The rest of an entry's header, used to create a file from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EntryDetails {
    /// The path as written, if it is not UTF-8.
    pub(crate) path: Option<Vec<u8>>,
    /// The raw target of a link.
    pub(crate) link: Vec<u8>,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) mtime: Time,
    pub(crate) type_flag: u8,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) sparse_map: Option<SparseMap>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// The layout of a sparse file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SparseMap {
    /// The size including holes.
    pub(crate) size: u64,
    /// Offset and length of the stored extents, in stored order.
    pub(crate) extents: Vec<(u64, u64)>,
    /// Whether the extents are listed as text before the contents, and not here.
    pub(crate) listed_in_content: bool,
}

/// Metadata from pax records.
#[derive(Debug, Default)]
pub(super) struct PaxAttributes {
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<Time>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    version: (Option<Vec<u8>>, Option<Vec<u8>>),
    real_size: Option<u64>,
    map: Vec<u64>,
}

impl PaxAttributes {
    /// Adds one record; the error names the problem.
    pub(super) fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match key {
            b"uid" => self.uid = Some(decimal(value).ok_or("the owner is not a number")?),
            b"gid" => self.gid = Some(decimal(value).ok_or("the group is not a number")?),
            b"mtime" => self.mtime = Some(time(value).ok_or("the time is not a number")?),
            b"GNU.sparse.major" => self.version.0 = Some(value.to_vec()),
            b"GNU.sparse.minor" => self.version.1 = Some(value.to_vec()),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => {
                self.real_size = Some(decimal(value).ok_or("the size is not a number")?);
            }
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                self.map.push(decimal(value).ok_or("invalid sparse map")?);
            }
            b"GNU.sparse.map" => {
                let numbers = value.split(|byte| *byte == b',').map(decimal);
                self.map = numbers.collect::<Option<_>>().ok_or("invalid sparse map")?;
            }
            _ => {
                if let Some(name) = key.strip_prefix(b"SCHILY.xattr.") {
                    self.xattrs.retain(|(known, _)| known != name);
                    self.xattrs.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Ok(())
    }

    /// Combines header and pax records. `stored` is the size of the entry in the archive.
    pub(super) fn details(
        self,
        raw: &HeaderBlock<'_>,
        link: Vec<u8>,
        stored: u64,
        gnu_map: Vec<u64>,
    ) -> Result<EntryDetails, TarError> {
        let number = |start, length| raw.number(start, length).unwrap_or(0);
        let sparse_map = self.sparse_map(raw, stored, gnu_map)?;
        let seconds = i64::try_from(number(136, 12)).unwrap_or(0);
        Ok(EntryDetails {
            path: None,
            link,
            uid: self.uid.unwrap_or_else(|| number(108, 8)),
            gid: self.gid.unwrap_or_else(|| number(116, 8)),
            mtime: self.mtime.unwrap_or(Time { seconds, nanos: 0 }),
            type_flag: raw.kind(),
            xattrs: self.xattrs,
            sparse_map,
        })
    }

    /// The sparse map, in any of the three pax forms or the GNU header form. An unknown version has none, as in Go's
    /// reader.
    fn sparse_map(
        &self,
        raw: &HeaderBlock<'_>,
        stored: u64,
        gnu_map: Vec<u64>,
    ) -> Result<Option<SparseMap>, TarError> {
        let version = (self.version.0.as_deref(), self.version.1.as_deref());
        let listed_in_content = version == (Some(b"1"), Some(b"0"));
        let (size, numbers) = match (raw.kind(), version) {
            (b'S', _) => (raw.number(483, 12), gnu_map),
            (b'0' | 0 | b'7', _) if listed_in_content => (self.real_size, Vec::new()),
            (b'0' | 0 | b'7', (Some(b"0"), Some(b"0" | b"1")) | (None, None)) if !self.map.is_empty() => {
                (self.real_size, self.map.clone())
            }
            _ => return Ok(None),
        };
        let size = size.ok_or_else(|| hostile("a sparse file has no size"))?;
        let extents = extents(&numbers)?;
        if !listed_in_content {
            check_extents(&extents, size, stored)?;
        }
        Ok(Some(SparseMap { size, extents, listed_in_content }))
    }
}

/// Groups alternating offsets and lengths.
pub(crate) fn extents(numbers: &[u64]) -> Result<Vec<(u64, u64)>, TarError> {
    if numbers.len() > 2 * MAX_EXTENTS {
        return Err(hostile("too many extents in a sparse file"));
    }
    let pairs = numbers.chunks(2).map(|pair| match pair {
        [offset, length] => Ok((*offset, *length)),
        _ => Err(hostile("invalid sparse map")),
    });
    pairs.collect()
}

/// Checks that extents are ordered, end within the file, and together have the stored size.
pub(crate) fn check_extents(extents: &[(u64, u64)], size: u64, stored: u64) -> Result<(), TarError> {
    let invalid = || hostile("sparse map does not match its file");
    let (mut end, mut sum) = (0_u64, 0_u64);
    for (offset, length) in extents {
        let next = offset.checked_add(*length).filter(|next| *offset >= end && *next <= size);
        end = next.ok_or_else(invalid)?;
        sum = sum.checked_add(*length).ok_or_else(invalid)?;
    }
    if sum == stored { Ok(()) } else { Err(invalid()) }
}

fn hostile(message: &str) -> TarError {
    TarError::Hostile(message.to_owned())
}

pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses `1700000000.25` or `-1.5`.
fn time(text: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let seconds: i64 = whole.parse().ok()?;
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = digits.fold(0_u32, |number, digit| number * 10 + u32::from(digit - b'0'));
    if nanos > 0 && whole.starts_with('-') {
        // Before the epoch: nanoseconds count forward from the second below.
        return Some(Time { seconds: seconds.checked_sub(1)?, nanos: 1_000_000_000 - nanos });
    }
    Some(Time { seconds, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pax_times_count_forward_from_a_whole_second() {
        let cases: [(&str, Option<(i64, u32)>); 9] = [
            ("0", Some((0, 0))),
            ("1700000000.25", Some((1_700_000_000, 250_000_000))),
            ("1.0000000019", Some((1, 1))),
            ("-1.5", Some((-2, 500_000_000))),
            ("-0.5", Some((-1, 500_000_000))),
            ("7.", Some((7, 0))),
            ("", None),
            ("1.x", None),
            ("1.2.3", None),
        ];
        for (text, expected) in cases {
            let expected = expected.map(|(seconds, nanos)| Time { seconds, nanos });
            assert_eq!(time(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_sparse_map_that_overlaps_or_exceeds_the_file_is_rejected() {
        let fits = |extents: &[(u64, u64)], size, stored| check_extents(extents, size, stored).is_ok();
        assert!(fits(&[], 10, 0) && fits(&[(0, 2), (8, 2)], 10, 4) && fits(&[(10, 0)], 10, 0));
        for (extents, size, stored) in [
            (vec![(0, 4), (2, 4)], 10, 8),
            (vec![(8, 4)], 10, 4),
            (vec![(0, 4)], 10, 5),
            (vec![(u64::MAX, 2)], u64::MAX, 2),
        ] {
            assert!(!fits(&extents, size, stored), "{extents:?}");
        }
        assert!(extents(&[1, 2, 3]).is_err());
    }
}
