/// Decides whether the next frame of an encoding must be a keyframe.
///
/// A frame that begins an encoding, or follows frames that were given up, must be one. A keyframe that a
/// receiver asked for is put off while the uplink allows none, and the encoding goes on without it.
struct KeyframeDemand: Hashable, Sendable {
    /// The number of calls of `begin` up to a moment.
    struct Mark: Hashable, Sendable {
        fileprivate var beginnings = 0
    }

    private var latest = Mark(beginnings: 1)
    private var answered = Mark()
    private var isRequested = false

    /// A demand for the first frame of an encoding.
    init() {}

    /// Demands a keyframe, because the next frame may not refer to earlier ones.
    mutating func begin() {
        latest.beginnings += 1
    }

    /// Notes that a receiver asks for a keyframe.
    mutating func request() {
        isRequested = true
    }

    /// The present moment; keep it while a frame is encoded.
    var mark: Mark { latest }

    /// Whether the next frame must be a keyframe; `mayAnswer` says whether a request may be answered now.
    func isDue(mayAnswer: @autoclosure () -> Bool) -> Bool {
        latest != answered || (isRequested && mayAnswer())
    }

    /// Whether somebody waits for a keyframe, due now or later.
    var isPending: Bool { latest != answered || isRequested }

    /// Notes that a keyframe was encoded, whose encoding began at `mark`.
    ///
    /// It also answers a request that came while it was encoded, because it has not been sent yet. A beginning that
    /// came meanwhile needs another keyframe.
    mutating func keyframeEncoded(begunAt mark: Mark) {
        answered = mark
        isRequested = false
    }
}
