//! A drive that always takes the same time: for checks of everything around it.

use crate::model::Model;
use crate::request::{Done, Request, SECTOR_BYTES, transfer_ns};

#[derive(Debug)]
pub(crate) struct Constant {
    latency_ns: u64,
    bandwidth: f64,
    /// When what was asked for so far is transferred.
    free_ns: u64,
    pub(crate) done: Done,
}

impl Constant {
    pub(crate) fn new(model: &Model) -> Self {
        Self {
            latency_ns: model.whole("latency"),
            bandwidth: model.number("bandwidth"),
            free_ns: 0,
            done: Done::default(),
        }
    }

    /// Requests do not wait for each other, but share the bandwidth.
    pub(crate) fn submit(&mut self, now_ns: u64, id: u64, request: &Request) {
        let at_ns = match request {
            Request::Read(sectors) | Request::Write(sectors) | Request::Zero(sectors) => {
                let bytes = (sectors.end - sectors.start) * SECTOR_BYTES;
                self.free_ns = self.free_ns.max(now_ns) + transfer_ns(bytes, self.bandwidth);
                self.free_ns.max(now_ns + self.latency_ns)
            }
            Request::Unmap(_) => now_ns + self.latency_ns,
            Request::Flush => self.free_ns.max(now_ns + self.latency_ns),
            Request::Free => now_ns,
        };
        self.done.push(at_ns, id);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Drive, Kind, Model, Request};

    /// No drive forgets, or zeroes, at no cost.
    #[test]
    fn what_is_unmapped_takes_a_write_of_a_disk_and_a_command_of_others() {
        for name in Model::built_in() {
            let model = Model::find(name).unwrap();
            let took = |request: Request| {
                let mut drive = Drive::new(&model, 1 << 40);
                drive.set_write_back(false);
                drive.submit(0, 1, &request);
                let mut last = 0;
                // With what it does afterwards.
                while let Some(event) = drive.next_event() {
                    last = event;
                    while drive.completed(event).is_some() {}
                }
                (last, drive.unmaps())
            };
            let (unmapped, unmaps) = took(Request::Unmap(8_000_000..8_000_008));
            let expected = match model.kind() {
                Kind::Constant => model.whole("latency"),
                // At the place of the heads, where it does not matter when the data is there.
                Kind::Disk => took(Request::Write(8_000_000..8_000_008)).0,
                Kind::Ssd => model.whole("command-time"),
            };
            assert_eq!((unmapped, unmaps), (expected, model.kind() != Kind::Disk), "{name}");
            if model.kind() == Kind::Disk {
                // More than goes over the interface in that time, or into a cache.
                let many = 0..64 << 11;
                let [unmapped, zeroed] =
                    [Request::Unmap(many.clone()), Request::Zero(many)].map(|request| took(request).0);
                assert_eq!(zeroed, unmapped, "{name}");
            }
        }
    }

    #[test]
    fn latency_to_the_nanosecond_and_one_bandwidth_for_all() {
        let text = "title = \"\"\nkind = \"constant\"\n\
                    [parameters]\nlatency = { is = \"1 ms\", from = \"\" }\nbandwidth = { is = \"512 MiB/s\", from = \"\" }\n";
        let model = Model::parse("constant", text).unwrap();
        let mut drive = Drive::new(&model, 1 << 30);
        drive.submit(7, 1, &Request::Read(0..8));
        drive.submit(7, 2, &Request::Read(100..101));
        drive.submit(7, 3, &Request::Flush);
        assert_eq!(drive.next_event(), Some(1_000_007));
        assert_eq!(drive.completed(1_000_006), None);
        assert_eq!([(); 3].map(|()| drive.completed(1_000_007)), [1, 2, 3].map(|id| Some((1_000_007, id))));
        // 1,024,000 bytes a request.
        drive.submit(2_000_000, 4, &Request::Write(0..2_000));
        drive.submit(2_000_000, 5, &Request::Write(0..2_000));
        assert_eq!(drive.completed(u64::MAX), Some((3_907_349, 4)));
        assert_eq!(drive.completed(u64::MAX), Some((5_814_698, 5)));
        assert_eq!(drive.next_event(), None);
    }
}
