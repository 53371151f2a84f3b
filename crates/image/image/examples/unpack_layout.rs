//! Unpacks the layers of an OCI layout into a layer store: `unpack_layout LAYOUT STORE`. The tests kill it halfway.

use std::env;
use std::error::Error;
use std::path::PathBuf;

use cudock_http::Progress;
use cudock_image::unpack::LayerStore;
use cudock_image::{ImageSource, OpenOptions, ResolvedImage};

struct Silent;

impl Progress for Silent {}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(layout), Some(store)) = (arguments.next(), arguments.next()) else {
        return Err("usage: unpack_layout LAYOUT STORE".into());
    };
    let scratch = layout.join("scratch");
    let options = OpenOptions { platform: None, client: None, sockets: Vec::new(), progress: None, scratch };
    let source = ImageSource::Layout { directory: layout, name: None };
    let image = ResolvedImage::resolve(&source, &options)?.open()?;
    LayerStore::open(store)?.unpack(&image, &Silent)?;
    Ok(())
}
