/// Decides whether the next frame of an encoding must be a keyframe.
///
/// A frame that begins an encoding, or follows frames that were given up, cannot be anything else. A keyframe that a
/// receiver asked for is put off while the uplink allows none, and the encoding goes on without it.
struct KeyframeDemand: Hashable, Sendable {
    /// A point in the encoding's history, before which its beginnings are known.
    struct Mark: Hashable, Sendable {
        fileprivate var beginnings = 0
    }

    private var latest = Mark(beginnings: 1)
    private var answered = Mark()
    private var isRequested = false

    /// A demand for the first frame of an encoding.
    init() {}

    /// The next frame that is begun may refer to nothing before it.
    mutating func begin() {
        latest.beginnings += 1
    }

    /// A receiver asks for a keyframe.
    mutating func request() {
        isRequested = true
    }

    /// The present point, to remember while a frame is encoded.
    var mark: Mark { latest }

    /// Whether the next frame must be a keyframe; `mayAnswer` says whether a request may be answered now.
    func isDue(mayAnswer: @autoclosure () -> Bool) -> Bool {
        latest != answered || (isRequested && mayAnswer())
    }

    /// A keyframe was encoded, which was begun at `mark`.
    ///
    /// It also answers a request that came while it was encoded, because it has not been sent yet. A beginning that
    /// came meanwhile needs another keyframe.
    mutating func keyframeEncoded(begunAt mark: Mark) {
        answered = mark
        isRequested = false
    }
}
