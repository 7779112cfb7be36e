import { Component, type ReactNode } from 'react';
import { checkConnection } from '../api/requests.ts';
import { Failure } from './failure.tsx';

interface Props {
  /** Identifies the content. New content is rendered again after an error. */
  of: string;
  children: ReactNode;
}

interface State {
  message?: string;
}

/** Limits a rendering error to a part of the page: foreign data may have any shape. */
export class Guard extends Component<Props, State> {
  override state: State = {};

  static getDerivedStateFromError(error: unknown): State {
    return { message: String(error) };
  }

  override componentDidUpdate({ of }: Props) {
    if (of !== this.props.of && this.state.message !== undefined) this.setState({ message: undefined });
  }

  /** The cause may be a script that can't be loaded, because the server is gone. */
  override componentDidCatch() {
    void checkConnection();
  }

  override render() {
    const { message } = this.state;
    if (message === undefined) return this.props.children;
    const reload = () => location.reload();
    return <Failure title="This can’t be shown." facts={{ status: 'UNKNOWN', message }} onRetry={reload} />;
  }
}
