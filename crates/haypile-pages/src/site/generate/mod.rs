//! Generated sites: seeded, with the statistics of HTTP Archive, and loadable by a browser.
//!
//! A site is the same for the same [`Generator`] and time on every machine and in every version:
//! only whole numbers and a fixed stream of random numbers decide it.
//!
//! - **Pages** have the number of requests and the weight of a percentile of HTTP Archive's
//!   ([`Percentile`]), each page of a site the same ones. Requests are of types in the proportions
//!   of its median page: scripts 24, images 18, style sheets 8, fonts 4, documents 2, others 15.
//! - **Sizes** are drawn from HTTP Archive's distributions by type and scaled together, so that
//!   they add up to the page's weight.
//! - **Headers** have its frequencies of `Cache-Control`, `Expires`, `ETag` and `Last-Modified`,
//!   over the resources of the site: see [the table](self#headers).
//! - **Shared resources**: all fonts, half of a page's scripts and style sheets, and a quarter of
//!   its images belong to all pages of the site; the rest is the page's own. That is an assumption,
//!   as are hosts (`www` for documents and data, `static` for scripts, style sheets and fonts,
//!   `images`) and the wait of a request that a script makes (5 ms, which stand for its execution).
//! - **Initiators**: documents load style sheets, most scripts and images, and frames; style sheets
//!   load fonts, some images and each fourth style sheet; scripts load each third script, some
//!   images and all data.
//!
//! # Headers
//!
//! | header | per cent of resources |
//! |---|---|
//! | `max-age=N` (four of five of them with a day or more) | 54 |
//! | `no-cache` | 5 |
//! | `no-cache, max-age=0` | 3 |
//! | `no-store` | 3 |
//! | `no-store, no-cache` | 3 |
//! | `no-store, no-cache, max-age=0` | 3 |
//! | `Expires` alone | 3 |
//! | neither | 26 |
//!
//! So `max-age` is in 60 % of resources, `no-cache` in 14 % and `no-store` in 9 %, as in HTTP
//! Archive; documents have `no-cache` or neither as long as there are enough of these.
//! Independently of them, 48 % have an `ETag` and 73 % a `Last-Modified`.

mod block;
mod headers;
mod percentile;
mod sizes;

use std::time::{Duration, SystemTime};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use self::block::{Item, KindCounts, SiteBlock, UrlBase};
use super::body::SiteBody;
use super::error::SiteError;
use super::model::{MAX_LOADS_PER_PAGE, MAX_PAGES, Site};
use super::page::{Page, PageLoad};
use super::resource::{Resource, ResourceKind};

pub use percentile::{Percentile, UnknownPercentile};

/// The wait before a request of a script in a generated page, which stands for the script's
/// execution.
pub const SCRIPT_WAIT: Duration = Duration::from_millis(5);

/// The smallest number of requests of a generated page: one of each kind of resource, and a second
/// script and image.
pub const MIN_REQUESTS: u32 = 8;

/// The largest weight of a generated page, in bytes.
pub const MAX_PAGE_BYTES: u64 = 512 << 20;

/// A generator of web sites for measurements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generator {
    /// The seed of the site: other seeds give other sizes, headers and bodies.
    pub seed: u64,
    /// The number of pages of the generated site.
    pub pages: usize,
    /// The number of requests of a generated page, at least [`MIN_REQUESTS`].
    pub requests: u32,
    /// The total length of the bodies of a generated page, in bytes, at most [`MAX_PAGE_BYTES`].
    pub page_bytes: u64,
    /// Whether all URLs are `https`, and not `http`.
    pub is_https: bool,
}

impl Generator {
    /// Returns a generator of pages by `http` at a percentile of HTTP Archive's pages.
    pub fn at_percentile(seed: u64, pages: usize, percentile: Percentile) -> Self {
        Self {
            seed,
            pages,
            requests: percentile.requests(),
            page_bytes: percentile.page_bytes(),
            is_https: false,
        }
    }

    /// Returns a generator of pages by `http` of this weight in bytes, with the number of requests that HTTP
    /// Archive's pages of this weight have: interpolated, and limited to its 10th and 90th
    /// percentiles.
    pub fn of_weight(seed: u64, pages: usize, page_bytes: u64) -> Self {
        let requests = percentile::requests_of_weight(page_bytes);
        Self { seed, pages, requests, page_bytes, is_https: false }
    }

    /// Generates a site whose `Last-Modified` and `Expires` headers are before and after the time
    /// `now`.
    ///
    /// # Errors
    ///
    /// [`SiteError::Generator`] for settings that no site can have: the message has the limit.
    pub fn generate(&self, now: SystemTime) -> Result<Site, SiteError> {
        self.check()?;
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let scheme = if self.is_https { "https" } else { "http" };
        let counts = KindCounts::of_page(self.requests);
        let shared_counts = counts.shared();
        let mut shared =
            SiteBlock::draw(&mut rng, &shared_counts, UrlBase { scheme, folder: "s" }, 1);
        let marks = shared.marks();
        let mut own: Vec<_> = (1..=self.pages)
            .map(|page| {
                let own_counts = counts.without(&shared_counts);
                let base = UrlBase { scheme, folder: &format!("p{page}") };
                SiteBlock::draw_page(&mut rng, &own_counts, base, marks + 1, &shared)
            })
            .collect();
        // The shared part has of the first page's weight what it has of its drawn sizes.
        let first = own.first().map_or(0, SiteBlock::bytes);
        let share = u128::from(shared.bytes()) * u128::from(self.page_bytes)
            / u128::from(shared.bytes() + first).max(1);
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        let shared_bytes = shared.scale_to(share.max(shared.min_bytes()));
        for block in &mut own {
            let rest = self.page_bytes.saturating_sub(shared_bytes);
            if rest < block.min_bytes() {
                let least = shared.min_bytes() + block.min_bytes();
                return Err(SiteError::Generator {
                    wrong: format!(
                        "a page of {} bytes with {} requests; it has at least about {least}",
                        self.page_bytes, self.requests
                    ),
                });
            }
            block.scale_to(rest);
        }
        let site = assemble(shared, own, &mut rng, now);
        site.validate()?;
        Ok(site)
    }

    fn check(&self) -> Result<(), SiteError> {
        let wrong = if self.pages == 0 || self.pages > MAX_PAGES {
            format!("{} pages; it has 1 to {MAX_PAGES}", self.pages)
        } else if !(MIN_REQUESTS as usize..=MAX_LOADS_PER_PAGE).contains(&(self.requests as usize))
        {
            format!(
                "{} requests per page; there are {MIN_REQUESTS} to {MAX_LOADS_PER_PAGE}",
                self.requests
            )
        } else if self.page_bytes > MAX_PAGE_BYTES {
            format!("a page of {} bytes; it has at most {MAX_PAGE_BYTES}", self.page_bytes)
        } else {
            return Ok(());
        };
        Err(SiteError::Generator { wrong })
    }
}

/// Makes the site of the shared block and those of the pages.
fn assemble(shared: SiteBlock, own: Vec<SiteBlock>, rng: &mut ChaCha8Rng, now: SystemTime) -> Site {
    let mut site = Site::default();
    let shared_len = shared.items.len();
    let mut children = Vec::new();
    add_resources(shared, 0, &mut site, &mut children);
    for (number, block) in (1..).zip(own) {
        // Items of a page's block count from the shared ones.
        let root = site.resources.len();
        add_resources(block, root - shared_len, &mut site, &mut children);
        let loads = loads_of(root, &children, &site.resources);
        site.pages.push(Page { name: format!("page {number}"), loads });
    }
    headers::add(&mut site.resources, rng, now);
    site
}

fn add_resources(block: SiteBlock, offset: usize, site: &mut Site, children: &mut Vec<Vec<usize>>) {
    let shared_len = block.shared_len;
    for Item { kind, url, body, children: own, .. } in block.items {
        let index = |child: usize| if child < shared_len { child } else { child + offset };
        children.push(own.into_iter().map(index).collect());
        let mut headers = vec![("content-type".to_owned(), body.format.media_type().to_owned())];
        if kind == ResourceKind::Font {
            // Browsers use fonts of another host only with its permission.
            headers.push(("access-control-allow-origin".to_owned(), "*".to_owned()));
        }
        site.resources.push(Resource {
            url,
            kind,
            status: 200,
            headers,
            body: SiteBody::Typed(body),
            coding: None,
        });
    }
}

/// Lists the loads of a page in the order in which a browser finds them: the children of a resource
/// follow those of the resources before it.
fn loads_of(root: usize, children: &[Vec<usize>], resources: &[Resource]) -> Vec<PageLoad> {
    let load = PageLoad::new;
    let mut loads = vec![load(root, None, Duration::ZERO)];
    let mut next = 0;
    while let Some(&PageLoad { resource: parent, .. }) = loads.get(next) {
        let is_script = resources[parent].kind == ResourceKind::Script;
        let wait = if is_script { SCRIPT_WAIT } else { Duration::ZERO };
        loads.extend(children[parent].iter().map(|&child| load(child, Some(next), wait)));
        next += 1;
    }
    loads
}

#[cfg(test)]
mod tests;
