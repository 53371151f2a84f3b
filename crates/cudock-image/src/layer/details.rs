//! What an entry says of itself beyond what looking at an image takes: whose it is, how old, and where its holes are.

use super::tar::{Raw, TarError};

/// Places where a file with holes has bytes: no more than the maps of one entry can hold.
const MAX_PARTS: usize = 100_000;

/// The rest of an entry's header, for whoever makes a file of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// The path as it stands there, where it is no text.
    pub(crate) path: Option<Vec<u8>>,
    /// Where a link leads, byte by byte.
    pub(crate) link: Vec<u8>,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) mtime: Time,
    /// The letter of its type.
    pub(crate) letter: u8,
    /// Major and minor number of a device.
    pub(crate) device: (u64, u64),
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) holes: Option<Holes>,
}

/// A moment, as files have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanos: u32,
}

/// A file of which only parts are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Holes {
    /// How large it is with its holes.
    pub(crate) size: u64,
    /// Offset and length of what is stored, in the order in which it is stored.
    pub(crate) parts: Vec<(u64, u64)>,
    /// Whether the parts are listed before the contents, in text, and not here.
    pub(crate) listed_inside: bool,
}

/// What pax records said of these.
#[derive(Debug, Default)]
pub(super) struct Said {
    uid: Option<u64>,
    gid: Option<u64>,
    mtime: Option<Time>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    version: (Option<Vec<u8>>, Option<Vec<u8>>),
    real_size: Option<u64>,
    map: Vec<u64>,
}

impl Said {
    /// Takes a record in; an error says what is wrong with it.
    pub(super) fn record(&mut self, key: &[u8], value: &[u8]) -> Result<(), &'static str> {
        match key {
            b"uid" => self.uid = Some(decimal(value).ok_or("its owner is not a number")?),
            b"gid" => self.gid = Some(decimal(value).ok_or("its group is not a number")?),
            b"mtime" => self.mtime = Some(time(value).ok_or("its time is not a number")?),
            b"GNU.sparse.major" => self.version.0 = Some(value.to_vec()),
            b"GNU.sparse.minor" => self.version.1 = Some(value.to_vec()),
            b"GNU.sparse.size" | b"GNU.sparse.realsize" => {
                self.real_size = Some(decimal(value).ok_or("its size is not a number")?);
            }
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" => {
                self.map.push(decimal(value).ok_or("a map of holes is broken")?);
            }
            b"GNU.sparse.map" => {
                let numbers = value.split(|byte| *byte == b',').map(decimal);
                self.map = numbers.collect::<Option<_>>().ok_or("a map of holes is broken")?;
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

    /// All that is known of an entry. `stored` is how many bytes it has in the archive.
    pub(super) fn details(
        self,
        raw: &Raw<'_>,
        link: Vec<u8>,
        stored: u64,
        gnu_map: Vec<u64>,
    ) -> Result<Details, TarError> {
        let number = |start, length| raw.number(start, length).unwrap_or(0);
        let holes = self.holes(raw, stored, gnu_map)?;
        let seconds = i64::try_from(number(136, 12)).unwrap_or(0);
        Ok(Details {
            path: None,
            link,
            uid: self.uid.unwrap_or_else(|| number(108, 8)),
            gid: self.gid.unwrap_or_else(|| number(116, 8)),
            mtime: self.mtime.unwrap_or(Time { seconds, nanos: 0 }),
            letter: raw.kind(),
            device: (number(329, 8), number(337, 8)),
            xattrs: self.xattrs,
            holes,
        })
    }

    /// The three ways to write holes in pax records, and the one in headers. A version nobody knows has none, as with
    /// Go's reader.
    fn holes(&self, raw: &Raw<'_>, stored: u64, gnu_map: Vec<u64>) -> Result<Option<Holes>, TarError> {
        let version = (self.version.0.as_deref(), self.version.1.as_deref());
        let listed_inside = version == (Some(b"1"), Some(b"0"));
        let (size, numbers) = match (raw.kind(), version) {
            (b'S', _) => (raw.number(483, 12), gnu_map),
            (b'0' | 0 | b'7', _) if listed_inside => (self.real_size, Vec::new()),
            (b'0' | 0 | b'7', (Some(b"0"), Some(b"0" | b"1")) | (None, None)) if !self.map.is_empty() => {
                (self.real_size, self.map.clone())
            }
            _ => return Ok(None),
        };
        let size = size.ok_or_else(|| hostile("a file with holes does not say how large it is"))?;
        let parts = parts(&numbers)?;
        if !listed_inside {
            check_parts(&parts, size, stored)?;
        }
        Ok(Some(Holes { size, parts, listed_inside }))
    }
}

/// Offsets and lengths out of numbers that alternate.
pub(crate) fn parts(numbers: &[u64]) -> Result<Vec<(u64, u64)>, TarError> {
    if numbers.len() > 2 * MAX_PARTS {
        return Err(hostile("a file with more holes than can be"));
    }
    let pairs = numbers.chunks(2).map(|pair| match pair {
        [offset, length] => Ok((*offset, *length)),
        _ => Err(hostile("a map of holes is broken")),
    });
    pairs.collect()
}

/// Parts come in order, end within the file, and are as long together as what is stored.
pub(crate) fn check_parts(parts: &[(u64, u64)], size: u64, stored: u64) -> Result<(), TarError> {
    let wrong = || hostile("a map of holes does not fit its file");
    let (mut end, mut sum) = (0_u64, 0_u64);
    for (offset, length) in parts {
        let next = offset.checked_add(*length).filter(|next| *offset >= end && *next <= size);
        end = next.ok_or_else(wrong)?;
        sum = sum.checked_add(*length).ok_or_else(wrong)?;
    }
    if sum == stored { Ok(()) } else { Err(wrong()) }
}

fn hostile(message: &str) -> TarError {
    TarError::Hostile(message.to_owned())
}

pub(crate) fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// `1700000000.25`, `-1.5`
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
        // A moment before the epoch: the nanoseconds count forwards from the second below it.
        return Some(Time { seconds: seconds.checked_sub(1)?, nanos: 1_000_000_000 - nanos });
    }
    Some(Time { seconds, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_pax_records_count_forwards_from_a_whole_second() {
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
    fn a_map_of_holes_that_overlaps_or_leaves_the_file_is_refused() {
        let fits = |parts: &[(u64, u64)], size, stored| check_parts(parts, size, stored).is_ok();
        assert!(fits(&[], 10, 0) && fits(&[(0, 2), (8, 2)], 10, 4) && fits(&[(10, 0)], 10, 0));
        for (parts, size, stored) in [
            (vec![(0, 4), (2, 4)], 10, 8),
            (vec![(8, 4)], 10, 4),
            (vec![(0, 4)], 10, 5),
            (vec![(u64::MAX, 2)], u64::MAX, 2),
        ] {
            assert!(!fits(&parts, size, stored), "{parts:?}");
        }
        assert!(parts(&[1, 2, 3]).is_err());
    }
}
