//! Compression formats, detected by magic bytes because names and media types are often wrong.

/// A compression format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    Plain,
    Gzip,
    Zstd,
}

impl Codec {
    /// The format of bytes that begin like these.
    pub fn detect(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Codec::Gzip,
            // Skippable frames may come first, as in zstd:chunked layers and seekable files.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Codec::Zstd,
            _ => Codec::Plain,
        }
    }

    /// The format that a media type names.
    pub fn of_media_type(media_type: &str) -> Self {
        match media_type {
            text if text.ends_with("zstd") => Codec::Zstd,
            text if text.ends_with("gzip") => Codec::Gzip,
            _ => Codec::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_of_docker_and_oci_name_the_format() {
        for (media_type, codec) in [
            ("application/vnd.oci.image.layer.v1.tar", Codec::Plain),
            ("application/vnd.oci.image.layer.v1.tar+gzip", Codec::Gzip),
            ("application/vnd.oci.image.layer.v1.tar+zstd", Codec::Zstd),
            ("application/vnd.docker.image.rootfs.diff.tar.gzip", Codec::Gzip),
        ] {
            assert_eq!(Codec::of_media_type(media_type), codec, "{media_type}");
        }
    }
}
