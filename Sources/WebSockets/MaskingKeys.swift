import Glibc

/// The keys that a client masks its frames with, each for one frame.
///
/// None can be foreseen by whoever makes the payload (RFC 6455, section 5.3). The system is asked for many at a time.
struct MaskingKeys {
    /// 256 bytes, the most that `getentropy` gives at once.
    private var keys = [UInt32](repeating: 0, count: 64)
    private var used = 64

    mutating func next() -> UInt32 {
        if used == keys.count {
            let status = unsafe keys.withUnsafeMutableBytes { unsafe getentropy($0.baseAddress, $0.count) }
            // A sandbox may withhold the system call; the library knows other ways.
            guard status == 0 else { return .random(in: 0...UInt32.max) }
            used = 0
        }
        used += 1
        return keys[used - 1]
    }
}
