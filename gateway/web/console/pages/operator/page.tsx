/** The pages of the operator: one for each path below /console/operator. */
import { Empty } from '../../parts/load.tsx';
import { BackupPage } from './backup.tsx';
import { DoctorPage } from './doctor.tsx';
import { EventsPage } from './events.tsx';
import { OperatorProjectPage } from './project.tsx';
import { ProjectsPage } from './projects.tsx';
import { QueuesPage } from './queues.tsx';
import { RunnersPage } from './runners.tsx';
import { AllSessionsPage } from './sessions.tsx';

/** `path`: behind /console/operator/. */
export function OperatorPage({ path }: { path: string }) {
  const [list = '', id = '', ...rest] = path.split('/');
  if (list === 'projects' && id !== '' && rest.length === 0) return <OperatorProjectPage id={id} />;
  switch (id === '' ? list : undefined) {
    case '':
      return <ProjectsPage />;
    case 'sessions':
      return <AllSessionsPage />;
    case 'runners':
      return <RunnersPage />;
    case 'queues':
      return <QueuesPage />;
    case 'events':
      return <EventsPage />;
    case 'doctor':
      return <DoctorPage />;
    case 'backup':
      return <BackupPage />;
    default:
      return (
        <Empty title="There is no such page.">
          <p>
            <a href="/console/operator">Projects</a>
          </p>
        </Empty>
      );
  }
}
