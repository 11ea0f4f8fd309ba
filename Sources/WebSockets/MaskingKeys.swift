import Glibc

/// The keys with which a client masks its frames, one for each frame.
///
/// The author of a payload must not be able to predict them (RFC 6455, section 5.3). They are taken from the system
/// many at a time.
struct MaskingKeys {
    /// 256 bytes: the most that `getentropy` returns at once.
    private var keys = [UInt32](repeating: 0, count: 64)
    private var used = 64

    mutating func next() -> UInt32 {
        if used == keys.count {
            let status = unsafe keys.withUnsafeMutableBytes { unsafe getentropy($0.baseAddress, $0.count) }
            // A sandbox may forbid the system call; the standard library has other ways.
            guard status == 0 else { return .random(in: 0...UInt32.max) }
            used = 0
        }
        used += 1
        return keys[used - 1]
    }
}
