import CV4L2
import Glibc
import MediaCore
import Threading

/// Tells of changes of the video nodes and of their permissions, by inotify; confine to one thread.
final class NodeNotifier {
    private let descriptor: Int32
    /// Whether changes are told; `false` once the folder itself is gone.
    private(set) var isWatching = true

    /// Watches `folder`; `nil` if the system does not let it.
    init?(folder: String = "/dev") {
        descriptor = cv4l2_inotify()
        guard descriptor >= 0 else { return nil }
        let changes = UInt32(IN_CREATE | IN_DELETE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO)
        guard unsafe inotify_add_watch(descriptor, folder, changes) >= 0 else {
            close(descriptor)
            return nil
        }
    }

    deinit {
        close(descriptor)
    }

    /// Waits for a change of a node, until `deadline`, or until `stop` is requested.
    ///
    /// - Returns: Whether a node changed.
    func wait(until deadline: MonotonicInstant, or stop: StopSignal) -> Bool {
        while true {
            let left = deadline.duration(since: MonotonicClock.now).wholeMicroseconds
            var files = (
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stop.descriptor, events: Int16(POLLIN), revents: 0)
            )
            let patience = Int32(clamping: max(0, (left + 999) / 1000))
            let ready = unsafe withUnsafeMutableBytes(of: &files) { bytes in
                unsafe poll(bytes.bindMemory(to: pollfd.self).baseAddress, 2, patience)
            }
            guard ready > 0, files.0.revents != 0, files.1.revents == 0 else { return false }
            if takeChanges() { return true }
        }
    }

    /// Takes the changes that there are.
    ///
    /// - Returns: Whether one is of a video node; the kind of change does not matter, because the nodes are looked at
    ///   afterwards.
    private func takeChanges() -> Bool {
        unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { bytes in
            let count = unsafe read(descriptor, bytes.baseAddress, bytes.count)
            let header = MemoryLayout<inotify_event>.size
            var (offset, isNode) = (0, false)
            while offset + header <= count {
                let event = unsafe bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                let end = min(offset + header + Int(event.len), count)
                let name = unsafe bytes[offset + header..<end].prefix { $0 != 0 }
                if event.mask & UInt32(IN_IGNORED) != 0 { isWatching = false }
                // Without a name it says that changes were lost.
                if unsafe name.isEmpty || name.starts(with: "video".utf8) { isNode = true }
                offset = end
            }
            return isNode
        }
    }
}
