public import MediaCore
import Threading

/// Takes the frames that a `FrameExtractor` reads.
///
/// An actor's or a main-actor class's own methods fulfil these requirements: they run on that actor's executor. Those of
/// another class run on the executor that the extractor was given.
public protocol FrameExtractorDelegate: AnyObject, Sendable {
    /// Takes a frame; while it does, newer frames replace each other.
    ///
    /// While a camera is gone there are none, unless the extractor includes its slates: see `FrameStream`.
    func captured(_ frame: VideoFrame) async

    /// Notes that the source has ended, with an error unless it has come to its end; does nothing by default.
    func extractionEnded(with error: (any Error)?) async
}

extension FrameExtractorDelegate {
    /// Does nothing.
    public func extractionEnded(with error: (any Error)?) async {}
}

/// Calls a delegate with the frames of a source: the form of `VideoSource.frames` for those who prefer a delegate.
///
/// It can be started and stopped at will. The delegate is not kept alive. Releasing the extractor stops it. May be used
/// from any thread.
public final class FrameExtractor: Sendable {
    private struct State: Sendable {
        weak var delegate: (any FrameExtractorDelegate)?
        var reader: FrameReader?
        /// Frames that earlier readers missed.
        var framesDropped = 0
    }

    private let source: any VideoSource
    private let frameRate: FrameRate?
    private let includesSubstitutes: Bool
    private let executor: (any TaskExecutor)?
    private let state: Monitor<State>

    /// Creates an extractor that is not started.
    ///
    /// - Parameters:
    ///   - source: The source of the frames.
    ///   - frameRate: How many frames a second the delegate gets at most; `nil` for all.
    ///   - includesSubstitutes: Whether it also gets slates (`VideoFrame.isSubstitute`).
    ///   - executor: Runs the delegate's methods, unless they are an actor's: these run on the actor's own executor.
    ///     `nil` for Swift's shared threads.
    ///   - delegate: Takes the frames.
    public init(
        source: any VideoSource,
        frameRate: FrameRate? = nil,
        includesSubstitutes: Bool = false,
        on executor: (any TaskExecutor)? = nil,
        delegate: any FrameExtractorDelegate
    ) {
        self.executor = executor
        self.source = source
        self.frameRate = frameRate
        self.includesSubstitutes = includesSubstitutes
        state = Monitor(State(delegate: delegate))
    }

    deinit {
        let reader = state.withLock { $0.reader }
        Task { await reader?.end() }
    }

    /// Whether frames are extracted.
    public var isRunning: Bool { state.withLock { $0.reader != nil } }

    /// The frames that newer ones replaced while the delegate was busy.
    public var framesDropped: Int { state.withLock { $0.framesDropped + ($0.reader?.framesDropped ?? 0) } }

    /// Begins to call the delegate, and starts the source if this is its first user; does nothing if it is running.
    ///
    /// - Throws: The error of the source's start; `CancellationError` if the task is cancelled, or `stop()` called, while
    ///   the source starts.
    public func start() async throws {
        let reader = FrameReader(source, frameRate: frameRate, includesSubstitutes: includesSubstitutes)
        let isFirst = state.withLock { state in
            guard state.reader == nil else { return false }
            state.reader = reader
            return true
        }
        guard isFirst else { return }
        do {
            try await reader.begin()
        } catch {
            forget(reader)
            throw error
        }
        Task(executorPreference: executor) { [weak self] in
            while let frame = await reader.next() {
                guard let delegate = self?.delegate else { break }
                await delegate.captured(frame)
            }
            await reader.end()
            // After a stop there is nothing to report.
            guard let self, forget(reader) else { return }
            await delegate?.extractionEnded(with: source.failure)
        }
    }

    /// Ends the calls of the delegate and the use of the source; a call that has begun may still finish.
    ///
    /// The delegate may call this too. A second call does nothing.
    public func stop() async {
        guard let reader = state.withLock({ $0.reader }), forget(reader) else { return }
        await reader.end()
    }

    private var delegate: (any FrameExtractorDelegate)? { state.withLock { $0.delegate } }

    /// Forgets `reader`; `false` if it is not the present one.
    @discardableResult
    private func forget(_ reader: FrameReader) -> Bool {
        state.withLock { state in
            guard state.reader === reader else { return false }
            state.framesDropped += reader.framesDropped
            state.reader = nil
            return true
        }
    }
}
