public import MediaCore
import Threading

/// A request for all sinks that took the place of another one, for a time.
package struct ReplacedRequest: Sendable {
    /// The request before it.
    let former: VideoFormatRequest
    /// The request that the device was opened by before it.
    let formerOpening: VideoFormatRequest
    /// The number of requests to open the device by, with this one.
    let openingCount: Int
    /// The number of requests to the source, with this one; a later request has a higher one.
    let requestCount: Int
}

/// What is requested of a source and of its sinks.
extension VideoSinks {
    /// Asks for another format for `sink` alone, in place of what was requested for it before.
    ///
    /// A field that is `nil` is as all sinks have it.
    ///
    /// The rate is applied here: frames above it are left out. The rest of the request goes to the sink, which crops
    /// and scales.
    public func request(_ request: VideoFormatRequest, for sink: any VideoSink) {
        change(sink) { $0 = request }
    }

    /// Removes the requests for `sink` alone, so that only the request for all sinks applies to it.
    public func resetRequest(for sink: any VideoSink) {
        change(sink) { $0 = VideoFormatRequest() }
    }

    private func change(_ sink: any VideoSink, _ body: (inout VideoFormatRequest) -> Void) {
        let passed = state.withLock { state -> VideoFormatRequest? in
            guard let index = state.entries.firstIndex(where: { $0.sink === sink }) else { return nil }
            body(&state.entries[index].request)
            return state.passed(to: state.entries[index])
        }
        if let passed { sink.onVideoFormatRequest(passed) }
    }

    /// Records a request for all sinks in place of the one before, and passes `forwarded` on to them.
    func request(_ request: VideoFormatRequest, forwarding forwarded: VideoFormatRequest) {
        passOn { state in
            state.request = request
            state.forwarded = forwarded
        }
    }

    /// Sets the request for all sinks that a reset goes back to, and passes `forwarded` on to them.
    func setInitialRequest(_ request: VideoFormatRequest, forwarding forwarded: VideoFormatRequest) {
        passOn { state in
            state.request = request
            state.initialRequest = request
            state.openingRequest = request
            state.forwarded = forwarded
        }
    }

    /// Replaces the request for all sinks, and the one that the device is opened by; passes `forwarded` on to them.
    ///
    /// If no request was made since `previous`, what that one replaced is what this one replaces.
    func replaceRequest(
        _ request: VideoFormatRequest,
        forwarding forwarded: VideoFormatRequest,
        after previous: ReplacedRequest?
    ) -> ReplacedRequest {
        passOn { state in
            let isUnchanged = previous?.requestCount == state.requestCount
            let former = isUnchanged ? previous?.former ?? state.request : state.request
            let isSameOpening = previous?.openingCount == state.openingCount
            let formerOpening = isSameOpening ? previous?.formerOpening : nil
            defer {
                state.request = request
                state.openingRequest = request
                state.forwarded = forwarded
            }
            return ReplacedRequest(
                former: former,
                formerOpening: formerOpening ?? state.openingRequest,
                openingCount: state.openingCount + 1,
                requestCount: state.requestCount + 1
            )
        }
    }

    /// Goes back to what `replaced` replaced, unless a request was made since; `forwarding` says what of it is passed
    /// on to the sinks.
    func takeBack(_ replaced: ReplacedRequest, forwarding: (VideoFormatRequest) -> VideoFormatRequest) {
        passOn { state in
            if state.openingCount == replaced.openingCount { state.openingRequest = replaced.formerOpening }
            guard state.requestCount == replaced.requestCount else { return }
            state.request = replaced.former
            state.forwarded = forwarding(replaced.former)
        }
    }

    /// Goes back to the request that the source was made with; `forwarding` says what of it is passed on to the sinks.
    func resetRequest(forwarding: (VideoFormatRequest) -> VideoFormatRequest = { $0 }) {
        passOn { state in
            state.request = state.initialRequest
            state.openingRequest = state.initialRequest
            state.forwarded = forwarding(state.initialRequest)
        }
    }

    /// Changes the requests, and tells each sink what is left to it from now on.
    private func passOn<Result: Sendable>(isRequest: Bool = true, _ change: (inout State) -> Result) -> Result {
        let (result, sinks) = state.withLock { state in
            let before = state
            let result = change(&state)
            if isRequest { state.requestCount += 1 }
            let sinks = state.entries.indices.compactMap { index -> (any VideoSink, VideoFormatRequest)? in
                let passed = state.passed(to: state.entries[index])
                guard let sink = state.entries[index].sink, passed != before.passed(to: before.entries[index]) else {
                    return nil
                }
                return (sink, passed)
            }
            return (result, sinks)
        }
        for (sink, passed) in sinks { sink.onVideoFormatRequest(passed) }
        return result
    }

    /// Sets the highest rate for sinks where none is requested.
    func limitRate(to rate: FrameRate?) {
        state.withLock { $0.limits.frameRate = rate }
    }

    /// Sets the size and the highest rate for sinks where none is requested; sinks apply the size.
    ///
    /// - Returns: The limits before.
    func limitOutput(to limits: VideoFormatRequest) -> VideoFormatRequest {
        guard state.withLock({ $0.limits }) != limits else { return limits }
        return passOn(isRequest: false) { state in
            defer { state.limits = limits }
            return state.limits
        }
    }

    /// Finds out whether it must be told that `limits` apply: to a sink that asks for no size or rate of its own.
    ///
    /// - Parameters:
    ///   - limits: The limits in force.
    ///   - areNew: Whether they have to be told although others were.
    /// - Returns: Whether to tell; then not again, unless they are new.
    func takeLimitNotice(of limits: VideoFormatRequest, areNew: Bool) -> Bool {
        state.withLock { state in
            if areNew { state.areLimitsTold = false }
            guard !state.areLimitsTold, state.isSinkLimited(by: limits) else { return false }
            state.areLimitsTold = true
            return true
        }
    }

    /// The format to capture: the request for all sinks, completed with the sinks' requirements.
    ///
    /// If the sinks require different formats, the largest size and the highest rate count. A sink without requirements
    /// adds nothing.
    var wanted: VideoFormatRequest { wanted(for: nil) }

    /// The format to capture if `request` takes the place of the request for all sinks.
    ///
    /// `nil` stands for that request, completed with the one that the device is opened by.
    func wanted(for request: VideoFormatRequest?) -> VideoFormatRequest {
        state.withLock { state in
            let request = request ?? state.request.completed(with: state.openingRequest)
            // Asked for each frame: no arrays are made.
            var required = VideoFormatRequest()
            for index in state.entries.indices where !state.entries[index].isPaused && state.entries[index].sink != nil
            {
                let requirements = state.entries[index].requirements
                if let size = requirements.dimensions, size.area > required.dimensions?.area ?? 0 {
                    required.dimensions = size
                }
                if let rate = requirements.frameRate { required.frameRate = max(rate, required.frameRate ?? rate) }
                required.pixelFormat = required.pixelFormat ?? requirements.pixelFormat
            }
            return request.completed(with: required)
        }
    }

    /// The request for all sinks, without their own requirements.
    var request: VideoFormatRequest { state.withLock { $0.request } }

    /// The request that the device is opened by where the present one says nothing.
    var openingRequest: VideoFormatRequest { state.withLock { $0.openingRequest } }

    /// The highest rate that any sink accepts; `nil` if one of them accepts every rate, or if there is no sink.
    var highestRate: FrameRate? {
        state.withLock { state in
            var highest: FrameRate?
            for entry in state.entries where !entry.isPaused {
                guard let limit = state.limit(of: entry) else { return nil }
                highest = max(highest ?? limit, limit)
            }
            return highest
        }
    }

    /// The highest rate that `sink` accepts; `nil` for any rate.
    package func rate(of sink: any VideoSink) -> FrameRate? {
        state.withLock { state in
            state.entries.first { $0.sink === sink }.flatMap { state.limit(of: $0) } ?? state.request.frameRate
        }
    }
}

extension VideoSinks.State {
    /// What is left to a sink: a request for it alone takes precedence over a request for all sinks.
    func passed(to entry: VideoSinks.Entry) -> VideoFormatRequest {
        var passed = entry.request.completed(with: forwarded)
        passed.dimensions = passed.dimensions ?? limits.dimensions
        return passed
    }

    /// Whether a sink gets a smaller size or a lower rate because of `limits`.
    func isSinkLimited(by limits: VideoFormatRequest) -> Bool {
        entries.contains { entry in
            guard !entry.isPaused, let sink = entry.sink else { return false }
            // Who reads frames gets them in the size that they are captured in.
            return limits.dimensions != nil && entry.request.dimensions == nil && !(sink is NewestFrameSlot)
                || limits.frameRate != nil && entry.request.frameRate == nil
        }
    }

    /// The lower of two rates: the one requested for this sink and the one requested for the whole source.
    func limit(of entry: VideoSinks.Entry) -> FrameRate? {
        let limit = openingRequest.frameRate ?? limits.frameRate
        let general = request.frameRate ?? entry.requirements.frameRate ?? limit
        guard let own = entry.request.frameRate else { return general }
        return general.map { min($0, own) } ?? own
    }
}
