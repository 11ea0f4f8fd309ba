/// Why encodings of a track cannot make their frames at present.
///
/// A series of failures is one: an encoding that fails at each picture beside others that do not is no new failure each
/// time. It ends with a frame, and when nothing more is to be encoded.
struct LaneErrors: Sendable {
    /// The errors, by the number of the encoding; none for one that makes its frames.
    private var errors: [Int: RoomError] = [:]

    /// The error of the smallest encoding that has one.
    var first: RoomError? { errors.min { $0.key < $1.key }?.value }

    /// Notes why an encoding could not make a frame, or with `nil` that it made one or need not make any.
    ///
    /// - Returns: Whether this begins a series of failures.
    mutating func note(_ error: RoomError?, of simulcastLayer: Int) -> Bool {
        let wereFine = errors.isEmpty
        // Most frames are made, and cost nothing here.
        if error != nil || !wereFine { errors[simulcastLayer] = error }
        return wereFine && error != nil
    }
}
